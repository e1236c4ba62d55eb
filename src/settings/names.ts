// Names that are set and are no setting's. Promises: what may be a misspelt safeguard is a problem, or in the
// process environment, where others write too, a warning.
import { problemOf, type Entry } from './entry.ts';
import type { Sources } from './sources.ts';
import type { Names } from './table.ts';

/** Other tools write names that begin with `ISSUER_` too. */
const PREFIXES = /\b(IDP|CORS|RESOURCE|METRICS|ISSUER_[^_]+)_/g;
/** Letter case matters in YAML, and is easily overlooked: it plays no part in whose section it is. */
const SECTIONS = /^(idp|issuers|api|cors|resource|metrics|server|log|profile)(\.|$)/i;

/** Adds variables that are not `known` to the problems, or to the warnings. */
export function checkVariables(known: readonly Names[], { variables, problems, warnings }: Sources): void {
  const names = ['CONFIG_FILE', 'ISSUERS', ...known.map(({ env }) => env)];
  const prefixes = names.join().match(PREFIXES) ?? [];
  for (const entry of variables) {
    // What differs from one of ours in letter case only is meant for it.
    const name = entry.name.toUpperCase();
    const isMeant = names.includes(name) || prefixes.some((prefix) => name.startsWith(prefix));
    // What Node 20 makes of two lines that --env-file names: the second counts for nothing.
    const isTorn = name.includes('\n');
    const faults = entry.place === 'environment' && !isTorn ? warnings : problems;
    if (isMeant || isTorn) checkName(entry, names, faults);
  }
}

/** The same for the keys of YAML. */
export function checkKeys(known: readonly Names[], { keys, problems, warnings }: Sources): void {
  const names = known.map(({ env, yaml }) => yaml || `${env} in the environment only`);
  for (const entry of keys) {
    const isEmptySection = entry.value === null && /^[^.A-Z]*$/.test(entry.name);
    if (!isEmptySection) checkName(entry, names, SECTIONS.test(entry.name) ? problems : warnings);
  }
}

function checkName(entry: Entry, names: readonly string[], faults: string[]): void {
  if (names.includes(entry.name)) return;

  const name = nearest(entry.name, names);
  const fix = name === undefined ? 'correct' : `write ${name}`;
  faults.push(problemOf(entry, `is not a setting; ${fix} or remove it`));
}

/** The first name with the fewest letters changed, at most three; letter case aside. */
function nearest(name: string, names: readonly string[]) {
  const distances = names.map((other) =>
    distance(name.toLowerCase(), other.toLowerCase().replace(/ .*/, '')),
  );
  const least = Math.min(...distances);
  return least > 3 ? undefined : names[distances.indexOf(least)];
}

/** How many letters, changed, added or left out, make one text the other; no more than `most`. */
function distance(one: string, other: string, most = 4): number {
  if (one === other || most === 0) return 0;
  const rest = one.slice(1);
  const otherRest = other.slice(1);
  if (one[0] === other[0]) return distance(rest, otherRest, most);

  const left = most - 1;
  const changed = distance(rest, otherRest, left);
  const added = distance(rest, other, left);
  const omitted = distance(one, otherRest, left);
  return 1 + Math.min(changed, added, omitted);
}
