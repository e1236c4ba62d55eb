// Loads settings from an environment, and from `.env` and `application.yml` in a directory.
import { parseDotEnv } from '../options/dot-env.ts';
import { parseYaml } from '../options/yaml.ts';
import { SERVICE_SETTINGS, type Settings } from './service-settings.ts';
import { readSettings, type ProblemsWith } from './settings/load.ts';
import { createLookup } from './settings/names.ts';
import { findEntries, type Environment } from './settings/sources.ts';
import type { SettingsTable } from './settings/table.ts';

/** The result of `loadSettings`. */
export interface Loaded {
  readonly settings: Settings;
  readonly files: readonly string[];
  /** Names that may be misspelt settings. */
  readonly warnings: readonly string[];
}

/**
 * Loads settings as `runService` does. Throws `ConfigurationError` with every problem, those of
 * `problemsWith` first.
 *
 * @example const { settings } = loadSettings(process.env, process.cwd());
 */
export const loadSettings = (
  environment: Environment,
  directory: string,
  problemsWith?: ProblemsWith,
): Loaded => loadFrom(SERVICE_SETTINGS, environment, directory, problemsWith);

export function loadFrom<Values extends Record<string, unknown>>(
  table: SettingsTable<Values>,
  environment: Environment,
  directory: string,
  problemsWith: ProblemsWith = () => [],
) {
  const found = findEntries(environment, directory, { parseDotEnv, parseYaml });
  const { files, warnings, strays } = found;
  const settings = readSettings(table, createLookup(found), (some) => problemsWith(some, strays));
  return { settings, files, warnings: [...strays, ...warnings] };
}
