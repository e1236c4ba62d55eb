// Settings as a process has them: its environment, `.env` and `application.yml` in its working directory.
import { parseDotEnv } from '../options/dot-env.ts';
import { parseYaml } from '../options/yaml.ts';
import { loadTable, type FaultsWith } from './settings/load.ts';
import { readSources, type Environment } from './settings/sources.ts';
import { TABLE, type Table } from './settings/table.ts';

/**
 * Reads the settings of a service with routes of its own, as `runService` does: from an environment, and
 * from `.env` and `application.yml` in a directory. Throws `ConfigurationError` with every problem, first
 * those that `faultsWith` gives.
 *
 * @example const { settings } = loadSettings(process.env, process.cwd());
 */
export const loadSettings = (environment: Environment, directory: string, faultsWith?: FaultsWith) =>
  loadFrom(TABLE, environment, directory, faultsWith);

/** The same for these settings. */
export const loadFrom = <Values extends Record<string, unknown>>(
  table: Table<Values>,
  environment: Environment,
  directory: string,
  faultsWith?: FaultsWith,
) => loadTable(table, readSources(environment, directory, { parseDotEnv, parseYaml }), faultsWith);
