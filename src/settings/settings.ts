/*
 * All sources → settings, or every problem at once (contract §2).
 * Precedence: environment, .env, application.yml, the profile's default; an empty value counts as absent.
 * Promises: nothing is guessed; an unknown key in a known section is a problem, because it may be a misspelt safeguard.
 */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { decodeUtf8 } from '../encoding.ts';
import { LOG_LEVELS } from '../log.ts';
import { DPOP_MODES, type DpopMode } from '../sender/credentials.ts';
import {
  blankFault, boolean, Fault, hostFault, integer, list, methodFault, originFault, plainUrlFault, text, urlFault, word,
  wordInEitherCase, type RawValue, type Rule,
} from './rules.ts';
import { parseYaml, YamlError, type YamlEntry } from './yaml.ts';

export type Profile = 'A' | 'B';

/** One setting: where it is looked for, its rule, and its default, which a profile may decide. */
interface Setting<Value> {
  readonly env: string | undefined;
  readonly yaml: string | undefined;
  readonly rule: Rule<Value>;
  readonly byDefault: (profile: Profile) => Value;
}

const setting = <Value>(env: string | undefined, yaml: string | undefined, rule: Rule<Value>, byDefault: NoInfer<Value> | ((profile: Profile) => NoInfer<Value>)): Setting<Value> =>
  ({ env, yaml, rule, byDefault: byDefault instanceof Function ? byDefault : () => byDefault });

const required = (what: string) => (): never => { throw new Fault(`${what} is required`); };

const none: undefined = undefined;
const optionally = <Value>(rule: Rule<Value>): Rule<Value | undefined> => rule;

const TABLE = {
  profile: setting('PROFILE', none, wordInEitherCase('A', 'B'), 'B'),
  domain: setting('IDP_DOMAIN', 'idp.domain', text(hostFault), required('the issuer base URL: the host name of the identity provider')),
  audience: setting('IDP_AUDIENCE', 'idp.audience', text(blankFault), required('the audience: the identifier of this API at the provider')),
  port: setting('PORT', 'server.port', integer(0, 65535), (profile) => (profile === 'A' ? 8080 : 3001)),
  host: setting('HOST', 'server.host', optionally(text(blankFault)), none),
  applicationName: setting(none, 'application.name', text(), 'gatehouse'),
  issuer: setting('IDP_ISSUER', 'idp.issuer', optionally(text(plainUrlFault('https'))), none),
  jwksUri: setting('IDP_JWKS_URI', 'idp.jwksUri', optionally(text(urlFault('https'))), none),
  dpopMode: setting('IDP_DPOP_MODE', 'idp.dpopMode', wordInEitherCase(...DPOP_MODES), (profile): DpopMode => (profile === 'A' ? 'ALLOWED' : 'DISABLED')),
  dpopIatOffsetSeconds: setting('IDP_DPOP_IAT_OFFSET_SECONDS', 'idp.dpopIatOffsetSeconds', integer(0, 1e9), 300),
  dpopIatLeewaySeconds: setting('IDP_DPOP_IAT_LEEWAY_SECONDS', 'idp.dpopIatLeewaySeconds', integer(0, 1e9), 30),
  dpopNonceSecret: setting('IDP_DPOP_NONCE_SECRET', 'idp.dpopNonceSecret',
    optionally(text((value) => value.length < 32 && 'must have at least 32 characters')), none),
  tokenCacheEntries: setting('IDP_TOKEN_CACHE_ENTRIES', 'idp.tokenCacheEntries', integer(0, 1_000_000), 10_000),
  clockToleranceSeconds: setting('IDP_CLOCK_TOLERANCE_SECONDS', 'idp.clockToleranceSeconds', integer(0, 300), 0),
  claimNamespace: setting('IDP_CLAIM_NAMESPACE', 'idp.claimNamespace', text((value) => (!URL.canParse(value) || /\s/.test(value)) && 'must be a URL prefix'), ''),
  scopeClaim: setting('IDP_SCOPE_CLAIM', 'idp.scopeClaim', text(blankFault), 'scope'),
  tokenType: setting('IDP_TOKEN_TYPE', 'idp.tokenType', word('any', 'at+jwt'), 'any'),
  requiredClaims: setting('IDP_REQUIRED_CLAIMS', 'idp.requiredClaims', list(blankFault), []),
  orgId: setting('IDP_ORG_ID', 'idp.orgId', text(), 'org_123456'),
  scopePolicy: setting('SCOPE_POLICY', 'api.scopePolicy', boolean, false),
  errorDetail: setting('ERROR_DETAIL', 'api.errorDetail', boolean, false),
  publicUrl: setting('PUBLIC_URL', 'api.publicUrl', optionally(text(plainUrlFault('https', 'http'))), none),
  trustProxy: setting('TRUST_PROXY', 'api.trustProxy', boolean, false),
  corsAllowedOrigins: setting('CORS_ALLOWED_ORIGINS', 'cors.allowedOrigins', list(originFault), []),
  corsAllowCredentials: setting('CORS_ALLOW_CREDENTIALS', 'cors.allowCredentials', boolean, true),
  corsAllowedMethods: setting('CORS_ALLOWED_METHODS', 'cors.allowedMethods', list(methodFault), ['GET', 'POST', 'PUT', 'DELETE']),
  shutdownDelaySeconds: setting('SHUTDOWN_DELAY_SECONDS', 'server.shutdownDelaySeconds', integer(0, 60), 0),
  logLevel: setting('LOG_LEVEL', 'log.level', word(...LOG_LEVELS), 'info'),
};

type Table = typeof TABLE;
type Read = { readonly [Name in keyof Table]: Table[Name] extends Setting<infer Value> ? Value : never };

/** Every setting with its value; `issuer` is settled. Seconds, entries and names as in the contract's table. */
export type Settings = Read & { readonly issuer: string };

/** Why the service does not start: every problem, one line each. */
export class ConfigurationError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Sections in which an unknown key is a problem, not a warning. */
const OWN_SECTIONS = ['idp', 'api', 'cors', 'server', 'log'];
const ALIASES: Readonly<Record<string, string>> = { 'spring.application.name': 'application.name' };

/**
 * Reads the settings of a process that has this environment and working directory.
 * `unknown` names what was set and is not known, for the log. Throws `ConfigurationError`.
 */
export function loadSettings(environment: Environment, directory: string): { settings: Settings; unknown: string[] } {
  const problems: string[] = [];
  const dotEnv = readDotEnv(directory, problems);
  const entries = readYamlFile(environment.CONFIG_FILE || dotEnv.CONFIG_FILE, directory, problems);
  const yaml = new Map(entries.map((entry) => [ALIASES[entry.path] ?? entry.path, entry.value]));
  const unknown = unknownKeys(entries, problems);

  const read = <Value>({ env, yaml: path, rule, byDefault }: Setting<Value>, profile: Profile): Value | undefined => {
    const raw = [env && environment[env], env && dotEnv[env], path && yaml.get(path)].find(isPresent);
    try {
      return raw === undefined ? byDefault(profile) : rule(raw);
    } catch (failure) {
      if (!(failure instanceof Fault)) throw failure;
      problems.push(`${[env, path].filter(Boolean).join(' or ')}: ${failure.message}`);
      return undefined;
    }
  };
  const profile = read(TABLE.profile, 'B') ?? 'B';
  const { profile: _, ...others } = TABLE;
  const values = Object.entries(others).map(([name, row]) => [name, read<unknown>(row, profile)]);
  const settings: Read = Object.fromEntries([['profile', profile], ...values]);
  if (settings.scopePolicy && profile === 'B') problems.push('SCOPE_POLICY or api.scopePolicy: belongs to profile A; remove it or set PROFILE=A');
  if (problems.length > 0) throw new ConfigurationError(problems);
  const issuer = settings.issuer ?? `https://${settings.domain}/`;
  return { settings: { ...settings, issuer, publicUrl: settings.publicUrl?.replace(/\/$/, '') }, unknown };
}

const isPresent = (raw: RawValue | undefined): raw is RawValue => raw !== undefined && raw !== null && raw !== '';

function readDotEnv(directory: string, problems: string[]): Environment {
  const content = readText(join(directory, '.env'), false, problems);
  return content === undefined ? {} : parseEnv(content.replace(/^\uFEFF/, ''));
}

function readYamlFile(configFile: string | undefined, directory: string, problems: string[]): YamlEntry[] {
  const file = resolve(directory, configFile || 'application.yml');
  const content = readText(file, configFile !== undefined && configFile !== '', problems);
  try {
    return content === undefined ? [] : parseYaml(content);
  } catch (failure) {
    if (!(failure instanceof YamlError)) throw failure;
    problems.push(`${file}: ${failure.message}`);
    return [];
  }
}

/** The text of a file; `undefined` when it is absent and not demanded, or when it is a problem. */
function readText(file: string, isDemanded: boolean, problems: string[]): string | undefined {
  try {
    const content = decodeUtf8(readFileSync(file));
    if (content === undefined) problems.push(`${file}: is not UTF-8`);
    return content;
  } catch (failure) {
    if (!(failure instanceof Error && 'code' in failure)) throw failure;
    if (isDemanded || failure.code !== 'ENOENT') problems.push(`${isDemanded ? 'CONFIG_FILE: ' : ''}${file}: cannot be read (${failure.code})`);
    return undefined;
  }
}

function unknownKeys(entries: readonly YamlEntry[], problems: string[]): string[] {
  const known = new Set([...Object.values(TABLE).map(({ yaml }) => yaml), ...Object.keys(ALIASES)]);
  const isHeading = ({ path, value }: YamlEntry) => value === null && OWN_SECTIONS.includes(path);
  const strangers = entries.filter((entry) => !known.has(entry.path) && !isHeading(entry));
  const [ours, others] = [true, false].map((own) => strangers.filter(({ path }) => OWN_SECTIONS.includes(path.split('.')[0] ?? '') === own));
  for (const { path, line } of ours ?? []) problems.push(`${path}: line ${line}: is not a setting; correct or remove it`);
  return (others ?? []).map(({ path }) => path);
}
