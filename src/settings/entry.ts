// Entries of settings, the problems that any can have, and the readers: text of the environment and files →
// the values that options have. Readers do not check values: the rules of the options do. Promises: no
// problem repeats more of a value than its scheme, since it may be a secret in the wrong setting.
import { isTextArray } from '../verify/base/encoding.ts';

export type Scalar = string | number | boolean | null;

export type RawValue = Scalar | readonly Scalar[];

export interface Entry {
  /** In YAML, keys joined by dots; a key with dots is quoted. */
  readonly name: string;
  readonly value: RawValue;
  /** Such as `/srv/.env, line 3`. */
  readonly source: string;
}

/** Earlier settings, without invalid ones. */
export type Earlier = Readonly<Record<string, unknown>>;

/** A setting that has a problem may be there. */
export const isKnownAbsent = (name: string, earlier: Earlier) =>
  name in earlier && earlier[name] === undefined;

/** For a setting that has no effect without another. */
export const needing =
  (name: string, problem: string) =>
  <Value>(_: Value, earlier: Earlier): string | undefined =>
    isKnownAbsent(name, earlier) ? problem : undefined;

export const TEMPLATE = 'contains "${", but nothing is substituted here; write the value';

/** Names what is wrong and the fix. Never shows the value, which may be a secret. */
export class SettingProblem extends Error {
  override readonly name = 'SettingProblem';
}

export function throwProblem(what: string): never {
  throw new SettingProblem(what);
}

export function throwAt(source: string, what: string): never {
  throw new SettingProblem(`${source}: ${what}`);
}

export function problemOf({ name, source }: Entry, problem: string): string {
  return `${name} (${source}): ${problem}`;
}

/** An empty value counts as absent. */
export const find = (entries: readonly Entry[], wanted: string) =>
  entries.find(({ name, value }) => name === wanted && value !== null && value !== '');

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
