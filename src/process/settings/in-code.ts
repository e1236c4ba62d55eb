// Looks up settings that are given in code. Promises: ignores no name that may be a misspelt setting.
import { isPlain } from '../../verify/base/encoding.ts';
import { ConfigurationError } from '../../gate/configuration-error.ts';
import { find, noteRepetitions, noteUnknown, type Entry } from './entry.ts';
import { FIRST_ISSUER, issuersIn, readSettings, type Lookup, type ProblemsWith } from './load.ts';
import { ISSUER_SETTINGS, type SettingsTable } from './table.ts';

const NO_SETTINGS = 'settings: are missing; give an object with at least domain and audience';

const IN_CODE = 'in code';

/** Throws `ConfigurationError` with every problem, those of `problemsWith` first. */
export function checkGiven<Values extends Record<string, unknown>>(
  table: SettingsTable<Values>,
  given: object,
  problemsWith: ProblemsWith = () => [],
) {
  if (Object(given) !== given) throw new ConfigurationError([...problemsWith({}), NO_SETTINGS]);

  const problems: string[] = [];
  const known: string[] = [];
  const entries = entriesOf(given, { ...ISSUER_SETTINGS, ...table, issuers: {} });
  noteRepetitions(entries, problems);

  const lookup: Lookup = {
    problems,
    issuers: issuersIn(entries),

    find(_, issuer, key) {
      const name = issuer === FIRST_ISSUER ? key : `issuers.${issuer}.${key}`;
      known.push(name);
      return find(entries, name) ?? { name, value: null, source: IN_CODE };
    },

    noteUnknown() {
      for (const entry of entries) noteUnknown(entry, known, problems);
    },
  };
  return readSettings(table, lookup, problemsWith);
}

/** Includes getters and inherited members of these names, since the type allows them. */
const entriesOf = (map: object, names: object, prefix = ''): Entry[] =>
  Object.keys({ ...map, ...names }).flatMap((key) => {
    const value = Reflect.get(map, key);
    if (value === undefined) return [];

    const path = prefix + key;
    const isMap = /^issuers(\.[^.]*)?$/.test(path) && typeof value === 'object';
    const members = isMap ? entriesOf(Object(value), names, `${path}.`) : [];
    if (members.length > 0) return members;

    const name = path.replace('issuers.idp.', '');
    const source = name === path ? IN_CODE : `${IN_CODE}, as ${path}`;
    // An empty {} counts as absent; a Map or a promise, which has no members either, is wrong.
    const isEmpty = isMap && isPlain(Object(value));
    return { name, value: isEmpty ? null : value, source };
  });
