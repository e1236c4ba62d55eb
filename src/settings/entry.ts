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

export const TEMPLATE = 'holds "${", which nothing replaces here; write the value';

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

export function noteRepetitions(entries: readonly Entry[], problems: string[]) {
  const sources = new Map<string, string>();
  for (const entry of entries) {
    const earlier = sources.get(entry.name);
    if (earlier !== undefined) problems.push(problemOf(entry, `is already set; remove one (${earlier})`));
    sources.set(entry.name, entry.source);
  }
}

/** Names that differ only in case or underscores are the same. */
export const squeezed = (name: string) => name.toLowerCase().replaceAll('_', '');

/** A known name may be followed by a space and advice. */
export function noteUnknown(entry: Entry, known: readonly string[], problems: string[]) {
  const { name, value } = entry;
  const isEmptySection = value === null && /^[^.A-Z]*$/.test(name);
  if (known.includes(name) || isEmptySection) return;

  const written = squeezed(name);
  const right = known.find((one) => squeezed(one).split(' ')[0] === written);
  const spelling = right === undefined ? 'correct' : `write ${right}`;
  const fix = /(^|\.)"/.test(name) ? 'nest the keys that its dots separate,' : spelling;
  problems.push(problemOf(entry, `is not a setting; ${fix} or remove it`));
}

/** An empty value counts as absent. */
export const find = (entries: readonly Entry[], wanted: string) =>
  entries.find(({ name, value }) => name === wanted && value !== null && value !== '');
