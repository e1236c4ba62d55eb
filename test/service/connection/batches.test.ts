/* The queue before the pipeline: computes the replies of one turn, then writes them together. */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { createBatches } from '../../../src/service/connection/batches.ts';

/** What happens, and in which turn, to requests that arrive together. */
async function worksOff(names: readonly string[]): Promise<string[]> {
  const done: string[] = [];

  type Named = { readonly request: { readonly name: string } };

  const work = ({ request: { name } }: Named) => {
    done.push(`prepare ${name}`);
    return name === 'later' ? new Promise(() => {}) : undefined;
  };

  const write = ({ request: { name } }: Named) => done.push(`write ${name}`);

  const enqueue = createBatches({ noteArrival: () => 0, work, write } as never);
  for (const name of names) enqueue({ name } as never, {} as never);
  if (done.length > 0) done.push('turn');
  for (const _ of names) {
    await new Promise(setImmediate);
    done.push('turn');
  }
  return done.slice(0, done.findLastIndex((entry) => entry !== 'turn') + 1);
}

const each = (what: string, names: readonly string[]) => names.map((name) => `${what} ${name}`);

test('computes the replies of one turn, then writes the responses', async () => {
  assert.deepEqual(await worksOff(['a', 'later', 'b']), [
    ...each('prepare', ['a', 'later', 'b']),
    ...each('write', ['a', 'b']),
  ]);
});

test('processes waiting requests as soon as there are 64, and the rest together in a later turn', async () => {
  const names = Array.from({ length: 140 }, (_, index) => `${index}`);
  const first = names.slice(0, 64);
  const second = names.slice(64, 128);
  const rest = names.slice(128);
  const worked = (some: readonly string[]) => [...each('prepare', some), ...each('write', some)];
  assert.deepEqual(await worksOff(names), [...worked(first), ...worked(second), 'turn', ...worked(rest)]);
});
