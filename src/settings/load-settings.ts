// Loads settings from an environment, and from `.env` and `application.yml` in a directory, as options of a
// service.
import type { MaybePromise } from '../verify/base/clock.ts';
import { printableSetting, type Log } from '../verify/base/events.ts';
import { Part } from '../verify/base/part.ts';
import { FIRST_ISSUER } from '../verify/options.ts';
import type { ServiceOptions } from '../service/options.ts';
import { parseDotEnv } from './dot-env.ts';
import { ConfigurationError } from './configuration-error.ts';
import { readSettings, withRules, type SettingsOf } from './load.ts';
import { createLookup } from './names.ts';
import { createParts, PART_SETTINGS, type PartsWithLog } from './parts.ts';
import { findEntries, type Environment } from './sources.ts';
import { RING_SETTINGS, type SettingsTable, type ValuesOf } from './table.ts';
import { parseYaml } from './yaml.ts';

export const SERVICE_SETTINGS = { ...RING_SETTINGS, ...PART_SETTINGS };

/** Names of times and sizes end in the unit. */
export type Settings = SettingsOf<SettingValues>;

export type SettingValues = ValuesOf<typeof SERVICE_SETTINGS>;

export interface Loaded<Values = Settings> {
  readonly settings: Values;
  readonly files: readonly string[];
  /** Names that may be misspelt settings. */
  readonly warnings: readonly string[];
}

/**
 * Loads settings as `runService` does: the options for `createService`, with the part of each setting that is
 * set. Writes warnings to the log that it makes. Rejects with `ConfigurationError`, which has every problem.
 *
 * @example const service = createService({ routes }, await loadSettings(process.env, process.cwd()));
 */
export async function loadSettings(environment: Environment, directory: string): Promise<ServiceOptions> {
  const loaded = await loadFrom(SERVICE_SETTINGS, environment, directory);
  const options = await optionsOf(loaded.settings);
  reportUnknown(loaded, Part.contentOf(options.log).log);
  return options;
}

/**
 * Settings that have a problem are absent. `strays` are names in the environment that may be misspelt
 * settings.
 */
export type ProblemsWith<Values> = (
  settings: Partial<Values>,
  strays: readonly string[],
) => MaybePromise<readonly string[]>;

/** Rejects with `ConfigurationError`: with every problem, those of `problemsWith` first. */
export async function loadFrom<Values>(
  table: SettingsTable<Values>,
  environment: Environment,
  directory: string,
  problemsWith: ProblemsWith<Values> = () => [],
): Promise<Loaded<SettingsOf<Values>>> {
  const found = findEntries(environment, directory, { parseDotEnv, parseYaml });
  const lookup = createLookup(found);
  const settings = readSettings(await withRules(table, lookup), lookup);
  const problems = [...(await problemsWith(settings, found.strays)), ...lookup.problems];
  if (problems.length > 0) throw new ConfigurationError(problems);

  const { files, warnings, strays } = found;
  return { settings, files, warnings: [...strays, ...warnings] };
}

export interface LoadedOptions extends ServiceOptions, PartsWithLog {
  readonly log: PartsWithLog['log'];
}

/** The options that settings describe. */
export async function optionsOf(settings: Settings): Promise<LoadedOptions> {
  const { [FIRST_ISSUER]: first, ...further } = settings.issuers;
  if (first === undefined) throw new TypeError('settings have a first issuer');

  const names = Object.keys(RING_SETTINGS).filter((name) => !OF_PROCESS.includes(name));
  const values = Object.fromEntries(names.map((name) => [name, Reflect.get(settings, name)]));
  const others = Object.entries(further).map(([name, issuer]) => [name, present(issuer)] as const);
  const issuers = Object.fromEntries(others);
  const parts = await createParts(settings);
  return Object.freeze({ ...present(values), ...present(first), issuers, ...parts });
}

/** What no option is called. */
const OF_PROCESS = ['applicationName', 'springApplicationName'];

/** Without what is absent: an option that is there has a value. */
function present<Values extends object>(values: Values): Values {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined && value !== '');
  return Object.fromEntries(entries) as Values;
}

/** Names that may be misspelt settings. */
export function reportUnknown({ warnings }: Pick<Loaded, 'warnings'>, log: Log) {
  for (const name of warnings) log('unknown setting ignored', { setting: printableSetting(name) });
}
