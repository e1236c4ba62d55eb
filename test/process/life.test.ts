/* Which hooks a process takes, what it says of others, how long the one at its end may take, and its exit. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endOnSignal, exit, hookProblems, readHooks, runOnStop, type Hooks } from '../../src/process/life.ts';
import { SERVICE_RULES } from '../../src/service/options.ts';
import { TestClock } from '../support/clock.ts';

/** Runs a hook that ends when `finish` is called, and what the log is told. */
function stopping() {
  const clock = new TestClock();
  const lines: unknown[][] = [];
  let finish = () => {};

  const hook = () =>
    new Promise<void>((resolve) => {
      finish = resolve;
    });

  const done = runOnStop(hook, clock, (...line) => lines.push(line));
  return { clock, lines, done, finish };
}

/** Options of `createService` that only code can give, and one of `createGate`. */
const WITHOUT_SETTING = [
  'fetchKeys',
  'introspect',
  'replayStore',
  'log',
  'onError',
  'onResponse',
  'onVerdict',
];

const OF_SETTINGS = 'is no hook; set it in the environment, .env or application.yml';

const problemsOf = (hooks: object) => hookProblems(hooks as Hooks, { issuers: {} });

test('takes each hook, and the options that have no setting [§28]', () => {
  const names = ['onStart', 'onStop', 'onError', 'onResponse', 'fetchKeys', 'introspect', 'log'];
  for (const name of names) {
    const hooks = { [name]: () => {} };
    assert.deepEqual(problemsOf(hooks), [], name);
    assert.deepEqual(Object.keys(readHooks(hooks)), [name]);
  }
});

test('says of each option that has a setting that it is no hook, and of all at once [§28]', () => {
  const names = Object.keys(SERVICE_RULES).filter((name) => !WITHOUT_SETTING.includes(name));
  assert.ok(names.length > WITHOUT_SETTING.length);
  const hooks = Object.fromEntries(names.map((name) => [name, 'x']));
  assert.deepEqual(
    problemsOf(hooks),
    names.map((name) => `hooks: ${name}: ${OF_SETTINGS}`),
  );
  assert.deepEqual(problemsOf({ port: 80, [Symbol('onStop')]: () => {} }), [
    `hooks: port: ${OF_SETTINGS}`,
    'hooks: Symbol(onStop): is no option; correct or remove it',
  ]);
});

test('what a hook throws when it is read is no problem of the hooks, but a bug that is thrown on', () => {
  let reads = 0;
  const hooks = {
    get onStop() {
      reads += 1;
      if (reads > 1) throw new RangeError('x');
      return () => {};
    },
  };
  assert.throws(() => problemsOf(hooks), RangeError);
  assert.equal(reads, 2);
});

const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

test('a hook that is done leaves no timer, which would keep the process alive', async () => {
  const before = timers();
  const { done, finish } = stopping();
  assert.equal(timers(), before + 1);
  finish();
  await done;
  assert.equal(timers(), before);
});

test('onStop is awaited for up to ten seconds [§28]', async () => {
  const { clock, lines, done, finish } = stopping();
  clock.advance(9_999);
  finish();
  assert.deepEqual([await done, lines], [true, []]);
});

test('an onStop that takes longer than ten seconds is logged as stop failed [§28]', async () => {
  const { clock, lines, done } = stopping();
  clock.advance(10_000);
  assert.equal(await done, false);
  assert.deepEqual(lines, [['stop failed', { reason: 'timeout' }]]);
});

for (const outcome of ['drained', 'deadline'] as const) {
  test(`a drain that ends as ${outcome} says so in its last line, and exits with 0 [§10, docs/logs-and-metrics.md]`, async (t) => {
    const lines: unknown[][] = [];
    const service = {
      phase: { isStarting: false, isStopping: false },
      log: (...line: unknown[]) => lines.push(line),
      close: () => {},
      stop: async () => outcome,
    };

    const others = process.listeners('SIGTERM');
    endOnSignal(service as never, undefined, new TestClock());
    const added = process.listeners('SIGTERM').filter((listener) => !others.includes(listener));
    t.after(() => added.forEach((listener) => process.off('SIGTERM', listener).off('SIGINT', listener)));
    const code = new Promise((resolve) => t.mock.method(process, 'exit', resolve));
    for (const listener of added) listener('SIGTERM');
    assert.equal(await code, 0);
    assert.deepEqual(lines, [
      ['shutting down', { reason: 'SIGTERM' }],
      ['stopped', { reason: outcome }],
    ]);
  });
}

test('a test that replaces process.exit sees the code, and its own process does not end with it', async (t) => {
  const replaced = t.mock.method(process, 'exit', () => undefined as never);
  const clock = new TestClock();
  await exit(3, clock);
  clock.advance(2_000);
  assert.deepEqual(replaced.mock.calls[0]?.arguments, [3]);
  assert.deepEqual([replaced.mock.callCount(), process.exitCode], [1, undefined]);
});

test('a pipe that nothing reads delays the exit by two seconds at most [docs/logs-and-metrics.md]', async (t) => {
  const clock = new TestClock();
  const replaced = t.mock.method(process, 'exit', () => undefined as never);

  // It never tells that it is done.
  const full = new Promise<void>((resolve) => {
    t.mock.method(process.stderr, 'write', () => {
      resolve();
      return false;
    });
  });
  void exit(3, clock);
  await full;
  clock.advance(1_999);
  assert.equal(replaced.mock.callCount(), 0);
  clock.advance(1);
  assert.deepEqual(replaced.mock.calls[0]?.arguments, [3]);
  process.exitCode = undefined;
});
