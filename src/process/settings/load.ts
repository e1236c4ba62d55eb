// Sources and a table → settings, or every problem at once. Does not know what a setting is: table.ts does.
// Promises: nothing is guessed, and nothing is passed over in silence that may be a setting.
import { noteRepetitions, Fault, problemOf, throwFault, type Entry, type RawValue } from './entry.ts';
import { noteKeys, noteVariables, readIssuers } from './names.ts';
import { find, readSources, type Environment, type Sources } from './sources.ts';
import type { Earlier } from './readers.ts';
import { issuerTable, TABLE, type Names, type Setting, type Table } from './table.ts';

/**
 * Why a service does not start: every problem, one line each, in printable ASCII.
 *
 * @example if (failure instanceof ConfigurationError) console.error(failure.problems.join('\n'));
 */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    const lines = problems.map((problem) => problem.replace(/[^\x20-\x7e]/g, '?'));
    super(lines.join('\n'));
    this.problems = lines;
  }
}

/** What `loadSettings` has found. */
export interface Loaded extends Readonly<ReturnType<typeof loadSettings>> {}

type Read = Readonly<Loaded['settings']>;

/** Every setting of the service with its value. Units are those of the names. */
export interface Settings extends Read {}

export type IssuerSettings = Settings['issuers'][string];

type Given<Values> = Partial<Omit<Values, 'audience' | 'issuers'>> & {
  domain: string;
  audience: string | readonly string[];
};

/** Settings in code: those of docs/settings.md in camel case without `IDP_`; or as they were loaded. */
export type GivenSettings =
  Settings | (Given<Settings & IssuerSettings> & { issuers?: Record<string, Given<IssuerSettings>> });

/** What of the settings routes are judged by; nothing of one that is at fault. */
export type SomeSettings = Readonly<{ resourceUrl?: unknown }>;

/** Why routes cannot be served with these settings. */
export type FaultsWith = (settings: SomeSettings) => readonly string[];

/**
 * Reads the settings of a service with routes of its own, as `runService` does: from an environment, and
 * from `.env` and `application.yml` in a directory. Throws `ConfigurationError` with every problem, first
 * those that `faultsWith` gives.
 *
 * @example const { settings } = loadSettings(process.env, process.cwd());
 */
export const loadSettings = (environment: Environment, directory: string, faultsWith?: FaultsWith) =>
  loadTable(TABLE, readSources(environment, directory), faultsWith);

const NO_SETTINGS = 'settings: are missing; give an object with at least domain and audience';

/** Settings in code, by the same rules. Throws `ConfigurationError`. */
export function checkSettings(given: GivenSettings, faultsWith: FaultsWith = () => []): Settings {
  if (Object(given) !== given) throw new ConfigurationError([...faultsWith({}), NO_SETTINGS]);

  const problems: string[] = [];
  const keys = entriesOf(given);
  noteRepetitions(keys, problems);
  const sources = { variables: [], keys, files: [], lookedIn: IN_CODE, problems, warnings: problems };
  return loadTable(TABLE, sources, faultsWith).settings;
}

/** Where settings stand that are called as in `Settings`. */
const IN_CODE = 'in code';

const OWN_NAMES = { ...issuerTable('idp'), ...TABLE, issuers: {} };

/** What a map holds, by its names in code; getters and what is inherited count, as its type says. */
const entriesOf = (map: object, prefix = ''): Entry[] =>
  Object.keys({ ...map, ...OWN_NAMES }).flatMap((key) => {
    const value = Reflect.get(map, key);
    if (value === undefined) return [];

    const path = prefix + key;
    const isMap = /^issuers(\.[^.]*)?$/.test(path) && typeof value === 'object';
    const members = isMap ? entriesOf(Object(value), `${path}.`) : [];
    if (members.length > 0) return members;

    const name = path.replace('issuers.idp.', '');
    const place = name === path ? IN_CODE : `${IN_CODE}, as ${path}`;
    // What shows no members is a value, and at fault, such as a Map, a URL or a promise; but not an empty
    // {}.
    const isEmpty = isMap && Reflect.getPrototypeOf(Object(value)) === Object.prototype;
    return { name, value: isEmpty ? null : value, place };
  });

/** Reads the settings of a table from their sources. Throws `ConfigurationError`. */
export function loadTable<Values extends Record<string, unknown>>(
  table: Table<Values>,
  sources: Sources,
  faultsWith: FaultsWith = () => [],
) {
  const { files, problems, warnings } = sources;
  /** What every setting is called that has been asked for. */
  const known: Names[] = [];
  /** The `iss` of the issuers so far. */
  const taken: unknown[] = [];

  /** A token names its issuer by `iss` alone, so that no two may have the same. */
  function noteIssuer(iss: unknown) {
    if (taken.includes(iss)) throwFault('is the issuer (iss) of another one too; give each its own');
    taken.push(iss);
  }

  /** Reads every setting that is not at fault. */
  function readTable<Read extends Record<string, unknown>>(part: Table<Read>, section = ''): Read {
    const values: Partial<Read> = {};
    for (const name in part) {
      const route = part[name];
      const names = namesOf(route, section + name, sources);
      const entry = entryOf(names, sources);
      known.push(names);

      try {
        const value = readRoute(route, entry.value, values);
        values[name] = value;
        if (name === 'issuer' && value) noteIssuer(value);
      } catch (failure) {
        if (!(failure instanceof Fault)) throw failure;

        // Without a place it may stand in a file that could not be read: then it is no problem of its own.
        if (entry.place) problems.push(problemOf(entry, failure.message));
      }
    }

    // One without a value is a problem, and then nobody gets any.
    return values as Read;
  }

  const issuers = Object.fromEntries(
    readIssuers(sources).map((name) => {
      const section = name === 'idp' ? '' : `issuers.${name}.`;
      return [name, readTable(issuerTable(name), section)] as const;
    }),
  );
  const values = readTable(table);
  noteVariables(known, sources);
  noteKeys(known, sources);
  const all = [...faultsWith(values), ...problems];
  if (all.length > 0) throw new ConfigurationError(all);

  return {
    settings: {
      ...values,
      /** Those that are trusted, by name; `idp` is the first. */
      issuers,
    },
    /** The paths of the files that were read. */
    files,
    /** What is set and is no setting, for the log. */
    warnings,
  };
}

/** `null` is a value that is missing. */
function readRoute<Value>(route: Setting<Value>, raw: RawValue, earlier: Earlier): Value {
  if (raw === null) return route.byDefault(earlier);
  // Other programs substitute what is written so; here it would be taken for a host name or an audience.
  const isTemplate = [raw].flat().some((part) => typeof part === 'string' && part.includes('${'));
  if (isTemplate) throwFault('holds "${", which nothing replaces here; write the value');
  return route.read(raw, earlier);
}

/** What a setting is called where it was looked for. */
const namesOf = (names: Names, inCode: string, { lookedIn }: Sources): Names =>
  lookedIn === IN_CODE ? { env: '', yaml: inCode } : names;

/** Where a setting stands, or was looked for. */
function entryOf({ env, yaml }: Names, { variables, keys, lookedIn }: Sources): Entry {
  const missing = { name: env ? `${env} or ${yaml}` : yaml, value: null, place: lookedIn };
  return find(variables, env) ?? find(keys, yaml) ?? missing;
}
