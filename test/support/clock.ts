/* A clock that stands still until it is told to move, so that no test sleeps. */
import type { Clock } from '../../src/keys/key-set.ts';

/** Time in milliseconds since the epoch; what was put off with `after` runs when `advance` reaches it. */
export class TestClock implements Clock {
  #now: number;
  #waiting: { due: number; action: () => void }[] = [];

  constructor(now = Date.now()) {
    this.#now = now;
  }

  now = (): number => this.#now;

  after = (millis: number, action: () => void): (() => void) => {
    const entry = { due: this.#now + millis, action };
    this.#waiting.push(entry);
    return () => {
      this.#waiting = this.#waiting.filter((other) => other !== entry);
    };
  };

  /** The milliseconds until each action that waits. */
  get pending(): readonly number[] {
    return this.#waiting.map(({ due }) => due - this.#now);
  }

  advance(millis: number): void {
    this.#now += millis;
    const due = this.#waiting.filter((entry) => entry.due <= this.#now);
    this.#waiting = this.#waiting.filter((entry) => entry.due > this.#now);
    for (const { action } of due) action();
  }
}
