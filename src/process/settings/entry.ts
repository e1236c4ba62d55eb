// What a source of settings holds, and the problems that any source can have.

export type Scalar = string | number | boolean | null;

export type RawValue = Scalar | readonly Scalar[];

export interface Entry {
  /** In YAML the keys joined by dots; a key that holds a dot is quoted. */
  readonly name: string;
  readonly value: RawValue;
  /** For messages, such as `/srv/.env, line 3`. */
  readonly place: string;
}

/** Says what is wrong and how to mend it; never the value, which may be a secret. */
export class Fault extends Error {}

export function throwFault(what: string): never {
  throw new Fault(what);
}

export function throwAt(place: string, what: string): never {
  throw new Fault(`${place}: ${what}`);
}

export function problemOf({ name, place }: Entry, fault: string): string {
  return `${name} (${place}): ${fault}`;
}

/** Adds a problem for every name that is set twice: only one of them counts. */
export function noteRepetitions(entries: readonly Entry[], problems: string[]): void {
  const places = new Map<string, string>();
  for (const entry of entries) {
    const earlier = places.get(entry.name);
    if (earlier !== undefined) problems.push(problemOf(entry, `is set before; remove one (${earlier})`));
    places.set(entry.name, entry.place);
  }
}

/** Adds a problem if the name is not `known`. A known name may have advice after a blank. */
export function noteUnknown(entry: Entry, known: readonly string[], problems: string[]): void {
  const { name, value } = entry;
  const isEmptySection = value === null && /^[^.A-Z]*$/.test(name);
  if (known.includes(name) || isEmptySection) return;

  const written = name.toLowerCase();
  const right = known.find((one) => one.toLowerCase().split(' ')[0] === written);
  const spelling = right === undefined ? 'correct' : `write ${right}`;
  // A key of YAML that holds a dot.
  const fix = /(^|\.)"/.test(name) ? 'nest the keys that its dots part' : spelling;
  problems.push(problemOf(entry, `is not a setting; ${fix} or remove it`));
}

/** The first value of a name. An empty value counts as absent. */
export const find = (entries: readonly Entry[], wanted: string) =>
  entries.find(({ name, value }) => name === wanted && value !== null && value !== '');
