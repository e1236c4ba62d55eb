/* A clock that stands still until it is told to move, so that no test sleeps. */
import type { Clock, MaybePromise } from '../../src/verify/base/clock.ts';

/** Time in milliseconds since the epoch; what was put off with `after` runs when `advance` reaches it. */
export class TestClock implements Clock {
  #now: number;
  #elapsed = 0;
  readonly #waiting = new Set<{ due: number; action: () => void }>();

  constructor(now = Date.now()) {
    this.#now = now;
  }

  now = (): number => this.#now;

  monotonic = (): number => this.#elapsed;

  /** Sets the wall clock, as an operator would: the monotonic one goes on as before. */
  set(now: number): void {
    this.#now = now;
  }

  after = (millis: number, action: () => void): (() => void) => {
    const entry = { due: this.#elapsed + millis, action };
    this.#waiting.add(entry);
    return () => void this.#waiting.delete(entry);
  };

  /** The milliseconds until each action that waits. */
  get pending(): readonly number[] {
    return [...this.#waiting].map(({ due }) => due - this.#elapsed);
  }

  advance(millis: number): void {
    this.#now += millis;
    this.#elapsed += millis;
    const due = [...this.#waiting].filter((entry) => entry.due <= this.#elapsed);
    for (const entry of due) this.#waiting.delete(entry);
    for (const { action } of due) action();
  }
}

/** What must be there without waiting. */
export function atOnce<Value>(value: MaybePromise<Value>): Value {
  if (value instanceof Promise) throw new Error('the value is only promised');

  return value;
}
