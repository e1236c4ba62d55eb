/* Settings and options for tests: read from an environment without files, at once, with a log that the test reads. */
import { fileURLToPath } from 'node:url';
import type { LogPart } from '../../src/gate/options.ts';
import { createLog, LOG_DEFAULTS } from '../../src/options/log.ts';
import { PROFILE_SETTINGS, type ProfileSettings } from '../../src/profiles/settings.ts';
import { OWN_ROUTES, type Kind } from '../../src/service/create-service.ts';
import {
  readServiceOptions,
  SERVICE_RULES,
  type ServiceOptions,
  type ServiceValues,
} from '../../src/service/options.ts';
import { ConfigurationError } from '../../src/settings/configuration-error.ts';
import { parseDotEnv } from '../../src/settings/dot-env.ts';
import { optionsOf, type Loaded } from '../../src/settings/load-settings.ts';
import { readSettings, type IssuerSettings } from '../../src/settings/load.ts';
import { findEntries } from '../../src/settings/sources.ts';
import { ISSUER_SETTINGS, type Setting } from '../../src/settings/table.ts';
import { parseYaml } from '../../src/settings/yaml.ts';
import type { Clock } from '../../src/verify/base/clock.ts';
import type { LogLevel } from '../../src/verify/base/events.ts';
import { Part, type Rule } from '../../src/verify/base/option.ts';
import { issuerOf, type IssuerValues } from '../../src/verify/options.ts';

/** Settings as environment variables. */
export type Environment = Readonly<Record<string, string>>;

/** This folder has no settings files. */
const NO_SETTINGS = fileURLToPath(new URL('.', import.meta.url));

/** The rules of all settings, those of parts too. */
async function importAllRules(): Promise<Readonly<Record<string, Rule>>> {
  const rules: Record<string, Rule> = { ...SERVICE_RULES };
  const all = { ...ISSUER_SETTINGS, ...PROFILE_SETTINGS };
  for (const [name, { importRule }] of Object.entries<Setting<unknown>>(all)) {
    const rule = await importRule?.('{tenant}');
    if (rule !== undefined) rules[name] = rule;
  }
  return rules;
}

const RULES = await importAllRules();

/** An issuer with every default, and the settings of its parts. */
type IssuerForTest = IssuerValues & Omit<IssuerSettings, keyof IssuerValues>;

/** Settings of a profile with every default, as its service has them. */
export type TestSettings = Omit<ServiceValues, 'issuers'> &
  Omit<ProfileSettings, keyof ServiceValues> &
  Readonly<{
    issuers: Readonly<Record<string, IssuerForTest>>;
    profile: string;
    applicationName: string;
    logLevel: LogLevel;
    accessLog: boolean;
    errorMessages: boolean;
  }>;

export interface LoadedForTest extends Omit<Loaded, 'settings'> {
  readonly settings: TestSettings;
}

/** What the process loads, at once. Throws `ConfigurationError`. */
export function loadProfileNow(environment: Environment, directory: string): LoadedForTest {
  const found = findEntries(environment, directory, { parseDotEnv, parseYaml });
  const settings: ProfileSettings = readSettings(PROFILE_SETTINGS, found, RULES);
  if (found.problems.length > 0) throw new ConfigurationError(found.problems);

  const { logLevel = LOG_DEFAULTS.level, accessLog = LOG_DEFAULTS.access, errorMessages = false } = settings;
  const issuers = Object.entries(settings.issuers).map(([name, issuer]) => {
    const set = Object.entries(issuer).filter(([, value]) => value !== undefined);
    return [name, { ...issuerOf(issuer), ...Object.fromEntries(set), audience: [issuer.audience].flat() }];
  });
  const withDefaults = {
    ...settings,
    logLevel,
    accessLog,
    errorMessages,
    issuers: Object.fromEntries(issuers),
  };
  return {
    settings: withDefaults as TestSettings,
    files: found.files,
    problems: [],
    warnings: [...found.strays, ...found.warnings],
    strays: [],
  };
}

/** The settings of this environment, without files. */
export const settingsFrom = (environment: Environment): TestSettings =>
  loadProfileNow(environment, NO_SETTINGS).settings;

/** The options of these settings, with these in place of some. */
export async function valuesOf(
  settings: TestSettings,
  more: Partial<ServiceOptions> = {},
): Promise<ServiceValues> {
  const issuers = Object.entries(settings.issuers).map(([name, { claimNamespace, ...issuer }]) => [
    name,
    { ...issuer, claimNamespace: claimNamespace || undefined },
  ]);
  const options = await optionsOf({ ...settings, issuers: Object.fromEntries(issuers) });
  return readServiceOptions({ ...options, ...more });
}

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
