/* Settings and options for tests: read from an environment without files, at once, with a log that the test reads. */
import { fileURLToPath } from 'node:url';
import type { LogPart } from '../../src/gate/options.ts';
import { createLog } from '../../src/options/log.ts';
import { PROFILE_SETTINGS, type ProfileSettings } from '../../src/profiles/settings.ts';
import { OWN_ROUTES, type Kind } from '../../src/service/create-service.ts';
import { readServiceOptions, type ServiceOptions, type ServiceValues } from '../../src/service/options.ts';
import { ConfigurationError } from '../../src/settings/configuration-error.ts';
import { parseDotEnv } from '../../src/settings/dot-env.ts';
import { optionsOf, type Loaded } from '../../src/settings/load-settings.ts';
import { readSettings, type SettingsOf } from '../../src/settings/load.ts';
import { createLookup } from '../../src/settings/names.ts';
import { findEntries } from '../../src/settings/sources.ts';
import type { Setting, SettingsTable } from '../../src/settings/table.ts';
import { parseYaml } from '../../src/settings/yaml.ts';
import type { Clock } from '../../src/verify/base/clock.ts';
import type { LogLevel } from '../../src/verify/base/events.ts';
import { Part } from '../../src/verify/base/part.ts';

/** Settings as environment variables. */
export type Environment = Readonly<Record<string, string>>;

/** This folder has no settings files. */
const NO_SETTINGS = fileURLToPath(new URL('.', import.meta.url));

/** The same table with the rules of all parts. */
async function loadRules<Values>(table: SettingsTable<Values>): Promise<SettingsTable<Values>> {
  const rows = Object.entries<Setting<unknown>>(table as Record<string, Setting<unknown>>).map(
    async ([name, row]) => [name, { ...row, option: (await row.load?.()) ?? row.option }],
  );
  return Object.fromEntries(await Promise.all(rows));
}

const WITH_RULES = await loadRules(PROFILE_SETTINGS);

/** What the process loads, at once. Throws `ConfigurationError`. */
export function loadNow<Values>(
  table: SettingsTable<Values>,
  environment: Environment,
  directory: string,
): Loaded<SettingsOf<Values>> {
  const found = findEntries(environment, directory, { parseDotEnv, parseYaml });
  const lookup = createLookup(found);
  const settings = readSettings(table, lookup);
  if (lookup.problems.length > 0) throw new ConfigurationError(lookup.problems);
  const { files, warnings, strays } = found;
  return { settings, files, warnings: [...strays, ...warnings] };
}

export const loadProfileNow = (environment: Environment, directory: string): Loaded<ProfileSettings> =>
  loadNow(WITH_RULES, environment, directory);

/** The settings of this environment, without files. */
export const settingsFrom = (environment: Environment): ProfileSettings =>
  loadProfileNow(environment, NO_SETTINGS).settings;

/** The options of these settings, with these in place of some. */
export const valuesOf = async (
  settings: ProfileSettings,
  more: Partial<ServiceOptions> = {},
): Promise<ServiceValues> => readServiceOptions({ ...(await optionsOf(settings)), ...more });

export interface TestLog {
  readonly log: LogPart;
  /** Every line so far, parsed. */
  readonly logs: Record<string, any>[];
}

export function createTestLog(clock: Clock, level: LogLevel = 'debug', isAccessLogged = false): TestLog {
  const logs: Record<string, any>[] = [];
  const log = createLog(level, (line) => logs.push(JSON.parse(line)), clock.now);
  return { log: Part.make('log', { log, level, isAccessLogged }, true), logs };
}

/** The kind of service that the tests run. */
export const kindWith = (clock: Clock, others: Partial<Kind> = {}): Kind => ({
  ...OWN_ROUTES,
  clock,
  ...others,
});
