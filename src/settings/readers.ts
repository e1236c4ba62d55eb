// Text of the environment and files → the values that options have. Does not check them: the rules of the
// options do. Promises: no problem repeats more of a value than its scheme, since it may be a secret in the
// wrong setting.
import { isTextArray } from '../verify/base/encoding.ts';
import { throwProblem, type RawValue } from './entry.ts';

/** Throws `SettingProblem`. What it does not know it returns, for the rule to refuse. */
export type Reader = (raw: RawValue) => unknown;

export const text: Reader = (raw) => (typeof raw === 'string' ? raw : throwProblem('must be text; quote it'));

export const integer: Reader = (raw) =>
  typeof raw !== 'object' && /^\d{1,15}$/.test(String(raw)) ? Number(raw) : NaN;

export const inUpperCase: Reader = (raw) => (typeof raw === 'string' ? raw.toUpperCase() : raw);

export const inLowerCase: Reader = (raw) => (typeof raw === 'string' ? raw.toLowerCase() : raw);

export const boolean: Reader = (raw) => {
  if (typeof raw === 'boolean') return raw;

  const word = inLowerCase(raw);
  return word === 'true' || word === 'false' ? word === 'true' : throwProblem('must be one of true, false');
};

/** A list of strings, or one string with commas. */
export const list =
  (least = 0): Reader =>
  (raw) => {
    const members = typeof raw === 'string' ? raw.split(',').map((part) => part.trim()) : raw;
    if (isTextArray(members) && members.length >= least) return members;

    throwProblem(
      `must be a list of ${least} or more strings, or one string with commas; quote any other value`,
    );
  };

/** Of an option that may not be empty: an empty list counts as absent. */
export const listOrNone: Reader = (raw) => {
  const members = list()(raw);
  return isTextArray(members) && members.length > 0 ? members : undefined;
};
