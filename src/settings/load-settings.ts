// Loads settings from an environment, and from `.env` and `application.yml` in a directory.
import { parseDotEnv } from './dot-env.ts';
import { parseYaml } from './yaml.ts';
import { SERVICE_SETTINGS, type Settings } from './service-settings.ts';
import { readSettings, type ProblemsWith } from './load.ts';
import { createLookup } from './names.ts';
import { findEntries, type Environment } from './sources.ts';
import type { SettingsTable } from './table.ts';

/** The result of `loadSettings`. */
export interface Loaded {
  readonly settings: Settings;
  readonly files: readonly string[];
  /** Names that may be misspelt settings. */
  readonly warnings: readonly string[];
  /** Those of the environment: a warning at startup, a problem for `--check`. */
  readonly strays: readonly string[];
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
  problemsWith?: ProblemsWith,
) {
  const found = findEntries(environment, directory, { parseDotEnv, parseYaml });
  const settings = readSettings(table, createLookup(found), problemsWith);
  const { files, warnings, strays } = found;
  return { settings, files, warnings: [...strays, ...warnings], strays };
}
