// Entries of settings, and problems that any can have.

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
