/* The queue in front of the app: requests of one turn are prepared together and then written together (contract §10). */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { createListener } from '../../src/service/listener.ts';

/** What is done, and in which turn, with requests that arrive together; `batchSize` of them may wait. The responses to `gone` and the
 * sockets of `hung` are destroyed. */
async function worksOff(
  names: readonly string[],
  batchSize: number,
  gone: readonly string[] = [],
  hung: readonly string[] = [],
): Promise<string[]> {
  const done: string[] = [];
  const prepare = (request: object) => {
    const { name } = request as { name: string };
    done.push(`prepare ${name}`);
    return name === 'later' ? undefined : () => done.push(`write ${name}`);
  };
  const { server } = createListener(
    { prepare, answer: () => {}, refuse: () => assert.fail() } as never,
    () => 0,
    batchSize,
  );
  for (const name of names)
    server.emit(
      'request',
      { name, socket: { destroyed: hung.includes(name) } },
      { destroyed: gone.includes(name) },
    );
  if (done.length > 0) done.push('turn');
  for (const _ of names) {
    await new Promise(setImmediate);
    done.push('turn');
  }
  return done.slice(0, done.findLastIndex((entry) => entry !== 'turn') + 1);
}

const each = (what: string, names: readonly string[]) => names.map((name) => `${what} ${name}`);

test('prepares the requests of one turn, then writes their answers, when there are many', async () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
  const withLater = ['a', 'later', ...names.slice(1)];
  assert.deepEqual(await worksOff(withLater, 64), [...each('prepare', withLater), ...each('write', names)]);
  assert.deepEqual(await worksOff(names, 64), [...each('prepare', names), ...each('write', names)]);
});

test('answers the requests of one turn one by one when they are few', async () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
  assert.deepEqual(
    await worksOff(names, 64),
    names.flatMap((name) => [`prepare ${name}`, `write ${name}`]),
  );
  assert.deepEqual(await worksOff(['a', 'later', 'b'], 64), [
    'prepare a',
    'write a',
    'prepare later',
    'prepare b',
    'write b',
  ]);
});

test('lets no more requests wait than a batch has: the last of them has the batch worked off at once', async () => {
  assert.deepEqual(await worksOff(['a', 'b', 'c'], 1), [
    ...['a', 'b', 'c'].flatMap((name) => [`prepare ${name}`, `write ${name}`]),
  ]);
  const names = Array.from({ length: 20 }, (_, index) => `${index}`);
  const [first, second, rest] = [names.slice(0, 9), names.slice(9, 18), names.slice(18)];
  assert.deepEqual(await worksOff(names, 9), [
    ...each('prepare', first),
    ...each('write', first),
    ...each('prepare', second),
    ...each('write', second),
    'turn',
    ...rest.flatMap((name) => [`prepare ${name}`, `write ${name}`]),
  ]);
});

test('drops a request whose connection has gone while it waited', async () => {
  assert.deepEqual(await worksOff(['a', 'b'], 64, ['a']), ['prepare b', 'write b']);
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
  assert.deepEqual(await worksOff(['a', 'b'], 64, [], ['a']), ['prepare b', 'write b']);
  assert.deepEqual(
    await worksOff(names, 64, ['c']),
    [...each('prepare', names), ...each('write', names)].filter((entry) => !entry.endsWith('c')),
  );
});
