// Names that are set: those of issuers, and those that are no setting's. Promises: what may be a misspelt
// safeguard is a problem, or in the process environment, where others write too, a warning.
import { find, problemOf, type Entry } from './entry.ts';
import { list, text } from './readers.ts';
import type { Sources } from './sources.ts';
import type { Names } from './table.ts';

/** Other tools write names that begin with `ISSUER_` too. */
const PREFIXES = /\b(IDP|CORS|RESOURCE|METRICS|ISSUER_[^_]+)_/g;
/** Letter case matters in YAML, and is easily overlooked: it plays no part in whose section it is. */
const SECTIONS = /^"?(idp|issuers|api|cors|resource|metrics|server|log|profile)(\.|$)/i;
const ISSUER_NAME = /^(?!idp$)[a-z][a-z0-9]{0,15}$/;

const NAMES_FAULT =
  'must be up to 20 names, each a letter and up to 15 letters or digits, all small, not idp';

const TORN = 'is not a setting; correct the lines above it, which became a part of its name';

/** The names of the issuers: `idp`, and those in ISSUERS, else those in the map `issuers` of YAML. */
export function readIssuers({ variables, keys, problems }: Sources): string[] {
  const own = keys.filter(({ name }) => /^issuers\.[^.]*\./i.test(name));
  const map = {
    name: 'issuers',
    value: own.map(({ name }) => name.split('.')[1] ?? ''),
    place: own[0]?.place ?? '',
  };

  const entry = find(variables, 'ISSUERS') ?? map;
  const names = [...new Set(list(text)(entry.value))];
  const good = names.filter((name, index) => ISSUER_NAME.test(name) && index < 20);
  if (good.length < names.length) problems.push(problemOf(entry, NAMES_FAULT));
  return ['idp', ...good];
}

/** Adds variables that are not `known` to the problems, or to the warnings. */
export function noteVariables(known: readonly Names[], { variables, problems, warnings }: Sources): void {
  const names = ['CONFIG_FILE', 'ISSUERS', ...known.map(({ env }) => env)];
  const prefixes = names.join().match(PREFIXES) ?? [];

  function isMeant(written: string) {
    // What differs from one of ours in letter case only is meant for it.
    const name = written.toUpperCase();
    return names.includes(name) || prefixes.some((prefix) => name.startsWith(prefix));
  }

  for (const entry of variables) {
    if (entry.name.includes('\n')) problems.push(problemOf(withoutKey(entry, isMeant), TORN));
    else if (isMeant(entry.name)) noteName(entry, names, entry.place === 'environment' ? warnings : problems);
  }
}

/**
 * What may be shown of lines of which Node 20 makes one name, for --env-file: the last one, which counts for
 * nothing, if it is one of ours. Those above it may be a key, and so may it be (CWE-532).
 */
function withoutKey(entry: Entry, isMeant: (name: string) => boolean): Entry {
  const [, last = ''] = /\n[ \t]*(?:export[ \t]+)?(\w+)\s*$/.exec(entry.name) ?? [];
  return { ...entry, name: last !== '' && isMeant(last) ? last : 'a name of several lines' };
}

/** The same for the keys of YAML. */
export function noteKeys(known: readonly Names[], { keys, problems, warnings }: Sources): void {
  const names = known.map(({ env, yaml }) => yaml || `${env} in the environment only`);
  for (const entry of keys) {
    const isEmptySection = entry.value === null && /^[^.A-Z]*$/.test(entry.name);
    if (!isEmptySection) noteName(entry, names, SECTIONS.test(entry.name) ? problems : warnings);
  }
}

function noteName(entry: Entry, names: readonly string[], faults: string[]): void {
  if (names.includes(entry.name)) return;

  const written = entry.name.toLowerCase();
  const ours = names.find((name) => name.toLowerCase().replace(/ .*/, '') === written);
  const other = ours === undefined ? 'correct' : `write ${ours}`;
  // A key of YAML with a dot in it.
  const fix = /(^|\.)"/.test(entry.name) ? 'nest the keys that its dots part' : other;
  faults.push(problemOf(entry, `is not a setting; ${fix} or remove it`));
}
