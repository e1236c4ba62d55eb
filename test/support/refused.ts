/* Turns a returned refusal into a thrown one, for `assert.throws`. */
import { andThen, type MaybePromise } from '../../src/verify/base/clock.ts';
import { Refused } from '../../src/verify/base/refusal.ts';

/** Returns the value, or throws the refusal. */
export function unlessRefused<Value>(value: Value | Refused): Value {
  if (value instanceof Refused) throw value;
  return value;
}

/** The same for a promise. */
export const laterUnlessRefused = <Value>(value: MaybePromise<Value | Refused>): MaybePromise<Value> =>
  andThen(value, unlessRefused);
