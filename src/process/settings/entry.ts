// What a source of settings holds, and how it says that something in it is at fault.

export type Scalar = string | number | boolean | null;

/** A value as a source has it; the environment and `.env` have only text. */
export type RawValue = Scalar | readonly Scalar[];

/**
 * One value: its name, in YAML its keys joined by dots, of which one with a dot is in quotes; and where it
 * stands, such as `/srv/.env, line 3`.
 */
export interface Entry {
  readonly name: string;
  readonly value: RawValue;
  readonly place: string;
}

/** What is wrong with a value, a line or a file, and the fix; never the value, which may be a secret. */
export class Fault extends Error {}

/** Throws the `Fault` of a value. */
export function throwFault(what: string): never {
  throw new Fault(what);
}

/** Throws the `Fault` of a line. */
export function throwAt(place: string, what: string): never {
  throw new Fault(`${place}: ${what}`);
}

/** A problem of one entry. */
export function problemOf({ name, place }: Entry, fault: string): string {
  return `${name} (${place}): ${fault}`;
}

/** Adds a problem for every name that is set again: whichever counted, somebody meant the other. */
export function noteRepetitions(entries: readonly Entry[], problems: string[]): void {
  const places = new Map<string, string>();
  for (const entry of entries) {
    const earlier = places.get(entry.name);
    if (earlier !== undefined) problems.push(problemOf(entry, `is set before; remove one (${earlier})`));
    places.set(entry.name, entry.place);
  }
}

/** The first value of a name; an empty one counts as absent. */
export const find = (entries: readonly Entry[], wanted: string) =>
  entries.find(({ name, value }) => name === wanted && value !== null && value !== '');
