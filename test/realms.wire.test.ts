/* The package in a realm of its own, in which every error of Node is of another class. Real test runners:
   `npm run evidence runners`. */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runInContext } from 'node:vm';
import { jsonLog } from '../src/options/log.ts';
import { createRealm } from './support/realm.ts';

const pathOf = (name: string) => fileURLToPath(new URL(name, import.meta.url));

const { load } = createRealm();

const cases: Record<string, () => Promise<void>> = load(pathOf('support/adverse.cjs')).casesOf({
  gatehouse: load(pathOf('../dist/gatehouse.js')),
  testing: load(pathOf('../dist/testing.js')),
  log: load(pathOf('../dist/log.js')),
});

for (const [name, run] of Object.entries(cases)) test(`in another realm, ${name}`, run);

test('names an error and shows no frame where the formatter of stacks cannot be set', () => {
  const { context, load: loadThere } = createRealm();
  const { describeBug: describeThere } = loadThere(pathOf('../dist/verify/base/events.js'));
  runInContext('Object.freeze(Error)', context);
  const error = runInContext("new RangeError('secret')", context);
  assert.equal(
    JSON.stringify(describeThere(error)),
    JSON.stringify({ reason: 'bug', error: 'RangeError', frames: [] }),
  );
});

test('adds one listener to standard output and none to the process, in however many realms it is loaded: Node warns of more than ten', () => {
  const count = () => [process.stdout.listenerCount('error'), process.listenerCount('exit')];
  jsonLog();
  const before = count();
  assert.ok(before[0]! > 0);
  for (let realms = 0; realms < 3; realms += 1) {
    const { jsonLog: jsonLogThere } = createRealm().load(pathOf('../dist/log.js'));
    jsonLogThere();
  }
  assert.deepEqual(count(), before);
});
