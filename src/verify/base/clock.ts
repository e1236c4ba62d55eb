// The clock that the service is given, and values that may come later. process/log.ts has the system's
// clock.

export interface Clock {
  /** The wall clock, in milliseconds since the epoch: for tokens, proofs and log lines. */
  now(): number;
  /** Never goes back, in milliseconds since any start: for ages and pauses. */
  monotonic(): number;
  /** Runs the action once after `millis`. Returns a function that cancels it. Keeps no process alive. */
  after(millis: number, action: () => void): () => void;
}

export type MaybePromise<Value> = Value | Promise<Value>;

/** Looks for `then`, because libraries bring their own promise classes. */
export const isPromise = <Value>(value: MaybePromise<Value>): value is Promise<Value> =>
  typeof (value as Partial<Promise<Value>> | undefined)?.then === 'function';

/** Calls `next` with the value, at once unless it is a promise. */
export function andThen<Value, Result>(
  value: MaybePromise<Value>,
  next: (value: Value) => MaybePromise<Result>,
): MaybePromise<Result> {
  // The `then` of a library's promise may return something that cannot be awaited.
  return isPromise(value) ? Promise.resolve(value).then(next) : next(value);
}
