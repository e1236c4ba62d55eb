import assert from 'node:assert/strict';
import { test } from 'node:test';
import { andThen, nothing, systemClock } from '../../../src/verify/base/clock.ts';

test('goes on with the value of a promise of a library whose then returns nothing', async () => {
  const promised = {
    then: (resolve: (value: number) => void) => {
      resolve(5);
    },
  };
  assert.equal(await andThen(promised as unknown as Promise<number>, (value) => value + 1), 6);
});

test('goes on with the value of a native promise whose own then throws', async () => {
  const promised = Object.assign(Promise.resolve(5), { then: () => assert.fail('asked') });
  assert.equal(await andThen(promised, (value) => value + 1), 6);
});

test("keeps no process alive for what is to come, by the system's clock", () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  const cancel = systemClock.after(600_000, nothing);
  assert.equal(timers(), before);
  cancel();
});

test("measures ages by what an operator cannot set, by the system's clock", (t) => {
  const before = systemClock.monotonic();
  t.mock.timers.enable({ apis: ['Date'], now: 0 });
  assert.equal(systemClock.now(), 0);
  const age = systemClock.monotonic() - before;
  assert.ok(age >= 0 && age < 60_000);
});
