// Sources and a table → settings, or every problem at once. Does not know what a setting is: table.ts does.
// Promises: nothing is guessed, and nothing is passed over in silence that may be a setting.
import { asJsonObject } from '../base/encoding.ts';
import { Fault, problemOf, type Entry, type RawValue } from './entry.ts';
import { FIRST, namesFor, readNames } from './issuers.ts';
import { checkNames } from './names.ts';
import { find, readSources, type Environment, type Sources } from './sources.ts';
import { ISSUER, TABLE, type Earlier, type Names, type Setting, type Table } from './table.ts';

const SAME = 'is the issuer (iss) of another one too; give each its own';

/**
 * Why a service does not start: every problem, one line each, in printable ASCII.
 *
 * @example if (failure instanceof ConfigurationError) console.error(failure.problems.join('\n'));
 */
export class ConfigurationError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    const lines = problems.map((problem) => problem.replace(/[^\x20-\x7e]/g, '?'));
    super(lines.join('\n'));
    this.problems = lines;
  }
}

/** What `loadSettings` has found. */
export interface Loaded<Values> {
  readonly settings: Readonly<Values> & HasIssuers;
  /** The paths of the files that were read. */
  readonly files: readonly string[];
  /** What is set and is no setting, for the log. */
  readonly warnings: readonly string[];
}

interface HasIssuers {
  /** Those that are trusted, by name; `idp` is the first. */
  readonly issuers: ReturnType<typeof readIssuers>;
}

/** Every setting of the service with its value. Units are those of the names. */
export type Settings = ReturnType<typeof loadSettings>['settings'];

export type IssuerSettings = Settings['issuers'][string];

type Given<Values> = Partial<Omit<Values, 'audience' | 'issuers'>> &
  Readonly<{ domain: string; audience: string | readonly string[] }>;

/** Settings in code: those of docs/settings.md in camel case; or as they were loaded. */
export type GivenSettings =
  | Settings
  | (Given<Settings & IssuerSettings> &
      Readonly<{ issuers?: Readonly<Record<string, Given<IssuerSettings>>> }>);

/**
 * Reads the settings of a service with a table of its own, as `runService` does: from an environment, and
 * from `.env` and `application.yml` in a directory. Throws `ConfigurationError` with every problem.
 *
 * @example const { settings } = loadSettings(process.env, process.cwd());
 */
export const loadSettings = (environment: Environment, directory: string) =>
  loadTable(TABLE, environment, directory);

/** Reads the settings of a table for a process with this environment and working directory. Throws
 * `ConfigurationError`. */
export function loadTable<Values extends Record<string, unknown>>(
  table: Table<Values>,
  environment: Environment,
  directory: string,
): Loaded<Values> {
  const sources = readSources(environment, directory);
  const { files, warnings } = sources;
  return { settings: readAll(table, sources), files, warnings };
}

/** Settings in code, by the same rules. Throws `ConfigurationError`. */
export function checkSettings(given: GivenSettings): Settings {
  const problems: string[] = [];
  const keys = entriesOf(given, '');
  return readAll(TABLE, { variables: [], keys, lookedIn: 'code', problems, warnings: problems });
}

const IN_CODE: Readonly<Record<string, Names>> = { ...ISSUER, ...TABLE };

/** What a map holds, as it would be called in YAML. */
const entriesOf = (map: object, prefix: string): Entry[] =>
  Object.entries(map).flatMap(([key, value = null]) => {
    const name = IN_CODE[prefix + key]?.yaml ?? prefix + key;
    if (asJsonObject(value) === undefined) return { name, value, place: `${key} in code` };

    return entriesOf(value, name === 'issuers.idp' ? 'idp.' : `${name}.`);
  });

function readAll<Values extends Record<string, unknown>>(
  table: Table<Values>,
  sources: Sources,
): Readonly<Values> & HasIssuers {
  const names = [FIRST, ...readNames(sources)];
  const issuers = readIssuers(names, sources);
  const values = readTable(table, sources);
  const known = Object.values<Names>(table);
  for (const name of names) {
    known.push(...Object.values(ISSUER).map((row) => namesFor(name, row)));
  }

  checkNames(known, sources);
  if (sources.problems.length > 0) throw new ConfigurationError(sources.problems);

  return { ...values, issuers };
}

function readIssuers(names: readonly string[], sources: Sources) {
  const issuers = names.map((name) => [name, readTable(ISSUER, sources, name)] as const);
  const taken: string[] = [];
  for (const [name, { issuer }] of issuers) {
    const entry = entryOf(namesFor(name, ISSUER.issuer), sources);
    // A token names its issuer by `iss` alone.
    if (issuer !== '' && taken.includes(issuer)) sources.problems.push(problemOf(entry, SAME));
    taken.push(issuer);
  }
  return Object.fromEntries(issuers);
}

/** Reads every setting that is not at fault, as it is called for this issuer. */
function readTable<Values extends Record<string, unknown>>(
  table: Table<Values>,
  sources: Sources,
  issuer = FIRST,
): Values {
  const values: Partial<Values> = {};
  for (const name in table) {
    const row = table[name];
    const entry = entryOf(namesFor(issuer, row), sources);
    try {
      values[name] = readRow(row, entry.value, values);
    } catch (failure) {
      if (!(failure instanceof Fault)) throw failure;

      // Without a place it may stand in a file that could not be read: then it is no problem of its own.
      if (entry.place !== '') sources.problems.push(problemOf(entry, failure.message));
    }
  }

  // One without a value is a problem, and then nobody gets any.
  return values as Values;
}

/** `null` is a value that is missing. */
function readRow<Value>(row: Setting<Value>, raw: RawValue, earlier: Earlier): Value {
  if (raw === null) return row.byDefault(earlier);
  // Other programs substitute what is written so; here it would be taken for a host name or an audience.
  if (String(raw).includes('${')) throw new Fault('holds "${", which nothing replaces here; write the value');
  return row.read(raw, earlier);
}

/** Where a setting stands, or was looked for. */
function entryOf({ env, yaml }: Names, { variables, keys, lookedIn }: Sources): Entry {
  const missing = { name: `${env} or ${yaml}`, value: null, place: lookedIn };
  return find(variables, env) ?? find(keys, yaml) ?? missing;
}
