// Clocks, the system's among them, and values that may be promises.

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds that never go back: for ages and pauses. */
  monotonic(): number;
  /** Returns a function that cancels it. Keeps no process alive. */
  after(millis: number, action: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),

  after(millis, action) {
    const timer = setTimeout(action, millis).unref();
    return () => clearTimeout(timer);
  },
};

export const nothing = () => {};

export type MaybePromise<Value> = Value | Promise<Value>;

/** Looks for `then`: libraries bring their own promise classes. */
export const isPromise = <Value>(value: MaybePromise<Value>): value is Promise<Value> =>
  typeof (value as Partial<Promise<Value>> | undefined)?.then === 'function';

/** A new promise: a `then` that users wrote may return nothing or throw, even one of a native promise. */
export const toPromise = async <Value>(value: MaybePromise<Value>) => await value;

/** Continues at once unless the value is a promise. */
export function andThen<Value, Result>(
  value: MaybePromise<Value>,
  next: (value: Value) => MaybePromise<Result>,
): MaybePromise<Result> {
  return isPromise(value) ? toPromise(value).then(next) : next(value);
}

/** The result of `action`, or that of `recover` if it throws or rejects. */
export function attempt<Result>(
  action: () => MaybePromise<Result>,
  recover: (error: unknown) => Result,
): MaybePromise<Result> {
  try {
    const result = action();
    return isPromise(result) ? result.catch(recover) : result;
  } catch (error) {
    return recover(error);
  }
}

/** For functions of the user whose errors must not affect a request. */
export async function ignoreErrors(action: () => unknown): Promise<void> {
  try {
    await action();
  } catch {}
}
