// Time as the service is given it, and values that are there now or come later. Reads no clock:
// process/host.ts hands one in.

/** The clocks and the timer of a process; a test has its own. */
export interface Clock {
  /** The wall clock, in milliseconds since the epoch: for what a token, a proof or a log line says. */
  now(): number;
  /** A clock that nobody sets back, in milliseconds since some start: for ages and pauses. */
  monotonic(): number;
  /**
   * Runs the action once, after so many milliseconds; what it gives cancels that. Keeps no process alive.
   */
  after(millis: number, action: () => void): () => void;
}

/** A value, or a promise of it. */
export type MaybePromise<Value> = Value | Promise<Value>;

/** Of whatever kind: the global `Promise` may be another than that of `async`, or than that of a library. */
export const isLater = <Value>(value: MaybePromise<Value>): value is Promise<Value> =>
  typeof (value as Partial<Promise<Value>> | undefined)?.then === 'function';

/** Goes on with the value at once when it is there, and awaits it only when it is a promise. */
export function andThen<Value, Result>(
  value: MaybePromise<Value>,
  next: (value: Value) => MaybePromise<Result>,
): MaybePromise<Result> {
  // What a library's own `then` gives may be nothing to wait for.
  return isLater(value) ? Promise.resolve(value).then(next) : next(value);
}
