/* A clock that a test moves, so that no test sleeps. */
import type { Clock, MaybePromise } from '../../src/verify/base/clock.ts';

/** On a grid where sums and differences are exact: ten minutes later is never a little less. */
const onGrid = (millis: number) => Math.round(millis * 2 ** 20) / 2 ** 20;

/** Time in milliseconds since the epoch. `advance` runs the actions of `after` that become due. */
export class TestClock implements Clock {
  #now: number;
  #elapsed = 0;
  readonly #waiting = new Set<{ due: number; action: () => void }>();

  constructor(now = Date.now()) {
    this.#now = now;
  }

  now = (): number => this.#now;

  monotonic = (): number => this.#elapsed;

  /** Sets the wall clock, as an operator would. The monotonic clock does not change. */
  set(now: number): void {
    this.#now = now;
  }

  after = (millis: number, action: () => void): (() => void) => {
    const entry = { due: onGrid(this.#elapsed + millis), action };
    this.#waiting.add(entry);
    return () => void this.#waiting.delete(entry);
  };

  /** The milliseconds until each pending action. */
  get pending(): readonly number[] {
    return [...this.#waiting].map(({ due }) => due - this.#elapsed);
  }

  advance(millis: number): void {
    this.#now += millis;
    this.#elapsed = onGrid(this.#elapsed + millis);
    const due = [...this.#waiting].filter((entry) => entry.due <= this.#elapsed);
    for (const entry of due) this.#waiting.delete(entry);
    for (const { action } of due) action();
  }
}

/** A value that must not be a promise. */
export function atOnce<Value>(value: MaybePromise<Value>): Value {
  if (value instanceof Promise) throw new Error('the value is only promised');

  return value;
}
