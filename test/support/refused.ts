/* What the checks return instead of a value when they refuse: for tests of a refusal that is thrown. */
import { andThen, type MaybePromise } from '../../src/verify/base/clock.ts';
import { Refused } from '../../src/verify/base/refusal.ts';

/** The value, or the refusal thrown. */
export function unlessRefused<Value>(value: Value | Refused): Value {
  if (value instanceof Refused) throw value;
  return value;
}

/** The same of what may come later. */
export const laterUnlessRefused = <Value>(value: MaybePromise<Value | Refused>): MaybePromise<Value> =>
  andThen(value, unlessRefused);
