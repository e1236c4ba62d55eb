// Loads settings from an environment, and from `.env` and `application.yml` in a directory, as options of a
// service.
import { printableSetting, type Log } from '../verify/base/events.ts';
import { Part } from '../verify/base/option.ts';
import type { IntrospectionOptions } from '../options/introspection/introspection.ts';
import { FIRST_ISSUER, ISSUER_RULES, SAME_ISSUER, type IssuerOptions } from '../verify/options.ts';
import { SERVICE_RULES, type ServiceOptions } from '../service/options.ts';
import { ConfigurationError } from './configuration-error.ts';
import { problemOf, throwProblem } from './entry.ts';
import { importRules, readSettings, type IssuerSettings, type WithIssuers } from './load.ts';
import { createParts, PART_SETTINGS, type Parts } from './parts.ts';
import { findSetting, namesFor } from './names.ts';
import { findEntries, mayHaveFile, type Environment, type FoundEntries } from './sources.ts';
import {
  importIntrospection,
  importKeyAccess,
  importTenants,
  ISSUER_SETTINGS,
  RING_SETTINGS,
  type SettingsTable,
  type ValuesOf,
} from './table.ts';

export const SERVICE_SETTINGS = { ...RING_SETTINGS, ...PART_SETTINGS };

/** Names of times and sizes end in the unit. */
export interface Settings extends ValuesOf<typeof SERVICE_SETTINGS>, WithIssuers {}

export interface Loaded extends Pick<FoundEntries, 'files' | 'problems' | 'warnings' | 'strays'> {
  readonly settings: Settings;
}

/** Rejects with `ConfigurationError`, or with a `TypeError` if either is missing. */
export async function loadSettings(environment: Environment, directory: string): Promise<ServiceOptions> {
  if (Object(environment) !== environment || typeof directory !== 'string') throw new TypeError(NO_SOURCES);

  const loaded = await loadFrom(SERVICE_SETTINGS, environment, directory);
  if (loaded.problems.length > 0) throw new ConfigurationError(loaded.problems);

  const options = await optionsOf(loaded.settings);
  reportWarnings(loaded, Part.contentOf(options.log).log);
  return options;
}

const NO_SOURCES = 'loadSettings needs an environment and a directory, such as those of the process';

export async function loadFrom(
  table: SettingsTable,
  environment: Environment,
  directory: string,
): Promise<Loaded> {
  const parsers = mayHaveFile(environment, directory) ? await importParsers() : NO_PARSERS;
  const found = findEntries(environment, directory, parsers);
  const settings = readSettings(table, found, await importRules(table, found));
  await reportOverlaps(settings, found);
  return { settings, ...found };
}

/** Of an issuer with tenants and another: a token would not tell whose it is. */
async function reportOverlaps({ issuers }: WithIssuers, found: FoundEntries) {
  const areAlone = Object.values(issuers).every(({ tenantList }) => tenantList === undefined);
  if (areAlone) return;

  const { overlappingSettings } = await importTenants();
  for (const name of overlappingSettings(issuers)) {
    const entry = findSetting(found, namesFor(ISSUER_SETTINGS.issuer, name));
    found.problems.push(problemOf(entry, SAME_ISSUER));
  }
}

const importParsers = async () => ({
  ...(await import('./dot-env.ts')),
  ...(await import('./yaml.ts')),
});

const refuseFile = () => throwProblem('a file of settings has just appeared; start again');

const NO_PARSERS = { parseDotEnv: refuseFile, parseYaml: refuseFile };

type LoadedOptions = ServiceOptions & Pick<Parts, 'log'>;

/** The options that settings without problems describe. */
export async function optionsOf(settings: Settings): Promise<LoadedOptions> {
  const entries = Object.entries(settings.issuers).map(issuerOf);
  const { [FIRST_ISSUER]: first, ...issuers } = Object.fromEntries(await Promise.all(entries));
  if (first === undefined) throw new TypeError('settings have a first issuer');

  const own = Object.entries(settings).filter(([name]) => name in SERVICE_RULES);
  const parts = await createParts(settings);
  return Object.freeze({ ...Object.fromEntries(own), ...first, issuers, ...parts });
}

async function issuerOf([name, settings]: readonly [string, IssuerSettings]) {
  const { domain, audience } = settings;
  const own = Object.entries(settings).filter(([key]) => key in ISSUER_RULES);
  const issuer: IssuerOptions = {
    ...{ domain, audience, ...Object.fromEntries(own) },
    ...(await createTenants(settings)),
    keyAccess: await createKeyAccess(settings),
    introspection: await createIntrospection(settings),
  };
  return [name, issuer] as const;
}

async function createKeyAccess({ jwksTokenFile: tokenFile, caFile }: IssuerSettings) {
  if (tokenFile === undefined && caFile === undefined) return undefined;

  const { keyAccess } = await importKeyAccess();
  return keyAccess({ tokenFile, caFile });
}

async function createIntrospection(settings: IssuerSettings) {
  const { introspectionTokens: tokens, introspectionClientId: clientId = '' } = settings;
  if (tokens === undefined) return undefined;

  const { introspection } = await importIntrospection();
  return introspection({
    tokens: tokens as IntrospectionOptions['tokens'],
    uri: settings.introspectionUri,
    clientId,
    clientSecret: settings.introspectionClientSecret,
    keyFile: settings.introspectionKeyFile,
    keyId: settings.introspectionKeyId,
    audience: settings.introspectionAudience as IntrospectionOptions['audience'],
    cacheSeconds: settings.introspectionCacheSeconds,
  });
}

/** In place of the template. */
async function createTenants(settings: IssuerSettings): Promise<Partial<IssuerOptions>> {
  const { issuer, tenantList: list, tenantClaim: claim, authorizationServer } = settings;
  if (list === undefined || issuer === undefined) return {};

  const { tenants } = await importTenants();
  return { issuer: undefined, tenants: tenants({ issuer, list, claim, authorizationServer }) };
}

/** Names that may be misspelt settings. */
export function reportWarnings({ warnings, strays }: Loaded, log: Log) {
  for (const name of [...strays, ...warnings]) {
    log('unknown setting ignored', { setting: printableSetting(name) });
  }
}
