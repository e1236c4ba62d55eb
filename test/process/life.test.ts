/* How long the hook at the end of a process may take. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runOnStop } from '../../src/process/life.ts';
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
