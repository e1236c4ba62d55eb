// Sources and a table → settings, or every problem at once. Does not know what a setting is: table.ts does.
// Promises: nothing is guessed, and nothing is passed over in silence that may be a setting.
import { Fault, problemOf, type Entry, type RawValue } from './entry.ts';
import { checkKeys, checkVariables } from './names.ts';
import { find, readSources, type Environment, type Sources } from './sources.ts';
import { TABLE, type Earlier, type Names, type Setting, type Table } from './table.ts';

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
  readonly settings: Readonly<Values>;
  /** The paths of the files that were read. */
  readonly files: readonly string[];
  /** What is set and is no setting, for the log. */
  readonly warnings: readonly string[];
}

/** Every setting of the service with its value. Units are those of the names. */
export type Settings = ReturnType<typeof loadSettings>['settings'];

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
  const problems: string[] = [];
  const sources = readSources(environment, directory, problems);
  const values = readTable(table, sources, problems);
  const known = Object.values<Names>(table);
  const warnings = checkVariables(known, sources.variables, problems);
  warnings.push(...checkKeys(known, sources.keys, problems));
  if (problems.length > 0) throw new ConfigurationError(problems);

  const files = sources.files.filter(({ state }) => state === 'there');
  // A setting without a value would have been a problem.
  return { settings: values as Values, files: files.map(({ path }) => path), warnings };
}

/** Settings in code, by the names of `Settings` and the same rules. Throws `ConfigurationError`. */
export function checkSettings(given: Readonly<Record<string, RawValue | undefined>>): Settings {
  const strays = Object.keys(given).filter((name) => !(name in TABLE));
  const problems = strays.map((name) => `${name}: is not a setting`);
  const values: Record<string, unknown> = {};
  for (const [name, row] of Object.entries<Setting<unknown>>(TABLE)) {
    try {
      values[name] = readRow(row, given[name] ?? null, values);
    } catch (failure) {
      if (!(failure instanceof Fault)) throw failure;
      problems.push(`${name}: ${failure.message}`);
    }
  }
  if (problems.length > 0) throw new ConfigurationError(problems);

  return values as Settings;
}

/** Reads every setting that is not at fault. */
function readTable<Values extends Record<string, unknown>>(
  table: Table<Values>,
  { variables, keys, files }: Sources,
  problems: string[],
): Partial<Values> {
  const values: Partial<Values> = {};
  // What is missing may stand in a file that could not be read: then it is no problem of its own.
  const isComplete = problems.length === 0;

  for (const name in table) {
    const row = table[name];
    const entry = find(variables, row.env) ?? find(keys, row.yaml);
    try {
      values[name] = readRow(row, entry?.value ?? null, values);
    } catch (failure) {
      if (!(failure instanceof Fault)) throw failure;
      if (entry !== undefined || isComplete) {
        problems.push(problemOf(entry ?? absent(row, files), failure.message));
      }
    }
  }
  return values;
}

/** `null` is a value that is missing. */
function readRow<Value>(row: Setting<Value>, raw: RawValue, earlier: Earlier): Value {
  if (raw === null) return row.byDefault(earlier);
  // Other programs substitute what is written so; here it would be taken for a host name or an audience.
  if (String(raw).includes('${')) throw new Fault('holds "${", which nothing replaces here; write the value');
  return row.read(raw, earlier);
}

/** Where a missing setting was looked for. */
function absent({ env, yaml }: Names, files: Sources['files']): Entry {
  const places = files.map(({ path, state }) => `${path} (${state})`);
  const place = `environment, ${places.join(', ')}`;
  return { name: `${env} or ${yaml}`, value: null, place };
}
