// Text of the environment and files → the values that options have. Does not check them: the rules of the
// options do. Promises: no problem repeats more of a value than its scheme, since it may be a secret in the
// wrong setting.
import { isTextArray } from '../verify/base/encoding.ts';
import { throwProblem, type RawValue } from './entry.ts';

/** Throws `SettingProblem`, or gives a value that the rule refuses. */
export type Reader<Value> = (raw: RawValue) => Value;

export const text: Reader<string> = (raw) =>
  typeof raw === 'string' ? raw : throwProblem('must be text; quote it');

export const integer: Reader<number> = (raw) =>
  typeof raw !== 'object' && /^\d{1,15}$/.test(String(raw)) ? Number(raw) : NaN;

export const inUpperCase: Reader<string> = (raw) => (typeof raw === 'string' ? raw.toUpperCase() : '');

export const inLowerCase: Reader<string> = (raw) => (typeof raw === 'string' ? raw.toLowerCase() : '');

export const boolean: Reader<boolean> = (raw) => {
  if (typeof raw === 'boolean') return raw;

  const word = inLowerCase(raw);
  return word === 'true' || word === 'false' ? word === 'true' : throwProblem('must be one of true, false');
};

/** A list of strings, or one string with commas. */
export const list = (least = 0): Reader<readonly string[]> =>
  function readList(raw) {
    const members = typeof raw === 'string' ? raw.split(',').map((part) => part.trim()) : raw;
    if (isTextArray(members) && members.length >= least) return [...new Set(members)];

    return throwProblem(
      `must be a list of ${least} or more strings, or one string with commas; quote any other value`,
    );
  };

/** Of an option that may not be empty: an empty list counts as absent. */
export const listOrNone: Reader<readonly string[] | undefined> = (raw) => {
  const members = list()(raw);
  return members.length > 0 ? members : undefined;
};

/** The word `any` alone, or a list. */
export const anyOrList: Reader<'any' | readonly string[]> = (raw) => {
  const members = list(1)(raw);
  return String(members) === 'any' ? 'any' : members;
};
