// All sources → settings, or every problem at once (contract §2): environment, .env, application.yml, the profile's default.
// Promises: nothing is guessed; an unknown key in a known section is a problem, because it may be a misspelt safeguard.
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { decodeUtf8 } from '../base/encoding.ts';
import { LOG_LEVELS } from '../base/events.ts';
import type { DpopMode } from '../sender/credentials.ts';
import * as rules from './readers.ts';
import {
  boolean,
  Fault,
  integer,
  list,
  optionally,
  text,
  word,
  wordInEitherCase,
  type RawValue,
  type Rule,
} from './readers.ts';
import { parseYaml, YamlError, type YamlEntry } from './yaml.ts';

export type Profile = 'A' | 'B';
/** One setting: where it is looked for, its rule, and its default, which the profile may decide. */
type Setting<Value> = Readonly<{
  env: string;
  yaml: string;
  rule: Rule<Value>;
  byDefault: (profile: Profile) => Value;
}>;
const setting = <Value>(
  env: string,
  yaml: string,
  rule: Rule<Value>,
  byDefault: NoInfer<Value> | ((profile: Profile) => NoInfer<Value>),
): Setting<Value> => ({
  env,
  yaml,
  rule,
  byDefault: byDefault instanceof Function ? byDefault : () => byDefault,
});
const required = (what: string, fix: string) => (): never => {
  throw new Fault(`${what} is required; set it to ${fix}`);
};
const TABLE = {
  profile: setting('PROFILE', '', wordInEitherCase('A', 'B'), 'B'),
  domain: setting(
    'IDP_DOMAIN',
    'idp.domain',
    text(rules.hostFault),
    required('the issuer base URL', 'the host name of the identity provider'),
  ),
  audience: setting(
    'IDP_AUDIENCE',
    'idp.audience',
    text(rules.blankFault),
    required('the audience', 'the identifier of this API at the provider'),
  ),
  port: setting('PORT', 'server.port', integer(0, 65535), (profile) => (profile === 'A' ? 8080 : 3001)),
  host: setting('HOST', 'server.host', optionally(text(rules.blankFault)), undefined),
  applicationName: setting('', 'application.name', text(), 'gatehouse'),
  issuer: setting('IDP_ISSUER', 'idp.issuer', optionally(text(rules.plainUrlFault('https'))), undefined),
  jwksUri: setting('IDP_JWKS_URI', 'idp.jwksUri', optionally(text(rules.urlFault('https'))), undefined),
  dpopMode: setting(
    'IDP_DPOP_MODE',
    'idp.dpopMode',
    wordInEitherCase('DISABLED', 'ALLOWED', 'REQUIRED'),
    (profile): DpopMode => (profile === 'A' ? 'ALLOWED' : 'DISABLED'),
  ),
  dpopIatOffsetSeconds: setting(
    'IDP_DPOP_IAT_OFFSET_SECONDS',
    'idp.dpopIatOffsetSeconds',
    integer(0, 1e9),
    300,
  ),
  dpopIatLeewaySeconds: setting(
    'IDP_DPOP_IAT_LEEWAY_SECONDS',
    'idp.dpopIatLeewaySeconds',
    integer(0, 1e9),
    30,
  ),
  dpopNonceSecret: setting(
    'IDP_DPOP_NONCE_SECRET',
    'idp.dpopNonceSecret',
    optionally(text(rules.secretFault)),
    undefined,
  ),
  tokenCacheEntries: setting(
    'IDP_TOKEN_CACHE_ENTRIES',
    'idp.tokenCacheEntries',
    integer(0, 1_000_000),
    10_000,
  ),
  clockToleranceSeconds: setting(
    'IDP_CLOCK_TOLERANCE_SECONDS',
    'idp.clockToleranceSeconds',
    integer(0, 300),
    0,
  ),
  claimNamespace: setting('IDP_CLAIM_NAMESPACE', 'idp.claimNamespace', text(rules.prefixFault), ''),
  scopeClaim: setting('IDP_SCOPE_CLAIM', 'idp.scopeClaim', text(rules.blankFault), 'scope'),
  tokenType: setting('IDP_TOKEN_TYPE', 'idp.tokenType', word('any', 'at+jwt'), 'any'),
  requiredClaims: setting('IDP_REQUIRED_CLAIMS', 'idp.requiredClaims', list(rules.blankFault), []),
  orgId: setting('IDP_ORG_ID', 'idp.orgId', text(), 'org_123456'),
  scopePolicy: setting('SCOPE_POLICY', 'api.scopePolicy', boolean, false),
  errorDetail: setting('ERROR_DETAIL', 'api.errorDetail', boolean, false),
  publicUrl: setting('PUBLIC_URL', 'api.publicUrl', optionally(text(rules.publicUrlFault)), undefined),
  trustProxy: setting('TRUST_PROXY', 'api.trustProxy', boolean, false),
  corsAllowedOrigins: setting('CORS_ALLOWED_ORIGINS', 'cors.allowedOrigins', list(rules.originFault), []),
  corsAllowCredentials: setting('CORS_ALLOW_CREDENTIALS', 'cors.allowCredentials', boolean, true),
  corsAllowedMethods: setting('CORS_ALLOWED_METHODS', 'cors.allowedMethods', list(rules.methodFault), [
    'GET',
    'POST',
    'PUT',
    'DELETE',
  ]),
  shutdownDelaySeconds: setting('SHUTDOWN_DELAY_SECONDS', 'server.shutdownDelaySeconds', integer(0, 60), 0),
  logLevel: setting('LOG_LEVEL', 'log.level', word(...LOG_LEVELS), 'info'),
};
const SECTIONS_OF_OURS = ['idp', 'api', 'cors', 'server', 'log'];
const ALIASES: Readonly<Record<string, string>> = { 'spring.application.name': 'application.name' };
const KNOWN_PATHS = [...Object.values(TABLE).map(({ yaml }) => yaml), ...Object.keys(ALIASES)];
type Read = {
  readonly [Name in keyof typeof TABLE]: (typeof TABLE)[Name] extends Setting<infer Value> ? Value : never;
};
/** Every setting with its value; `issuer` is settled. Units are those of the names. */
export type Settings = Read & { readonly issuer: string };
/** Why the service does not start: every problem, one line each. */
export class ConfigurationError extends Error {
  readonly problems = this.message.split('\n');
}
type Environment = Readonly<Record<string, string | undefined>>;
/** Reads the settings of a process that has this environment and working directory. `unknown` names what was set and is not
 * known, for the log. Throws `ConfigurationError`. */
export function loadSettings(
  environment: Environment,
  directory: string,
): { settings: Settings; unknown: string[] } {
  const problems: string[] = [];
  const attempt = collecting(problems);
  const dotEnvFile = join(directory, '.env');
  const dotEnv: Environment = parseEnv(attempt(dotEnvFile, Error, () => readText(dotEnvFile, false)) ?? '');
  const configFile = environment.CONFIG_FILE || dotEnv.CONFIG_FILE;
  const yamlFile = resolve(directory, configFile || 'application.yml');
  const yamlText =
    attempt(configFile ? `CONFIG_FILE: ${yamlFile}` : yamlFile, Error, () =>
      readText(yamlFile, Boolean(configFile)),
    ) ?? '';
  const entries = attempt(yamlFile, YamlError, () => parseYaml(yamlText)) ?? [];
  const yamlValues = new Map<string, RawValue>(
    entries.filter(({ value }) => isSet(value)).map(({ path, value }) => [ALIASES[path] ?? path, value]),
  );
  const read = <Value>(
    { env, yaml, rule, byDefault }: Setting<Value>,
    profile: Profile,
  ): Value | undefined => {
    const raw = [environment[env], dotEnv[env], yamlValues.get(yaml)].find(isSet);
    return attempt([env, yaml].filter(Boolean).join(' or '), Fault, () =>
      raw === undefined ? byDefault(profile) : rule(raw),
    );
  };
  const { profile: first, ...others } = TABLE;
  const chosen = read(first, 'B');
  const values = Object.entries(others).map(([name, row]) => [name, read<unknown>(row, chosen ?? 'B')]);
  const settings: Read = Object.fromEntries([['profile', chosen], ...values]);
  if (settings.scopePolicy && chosen === 'B')
    problems.push('SCOPE_POLICY or api.scopePolicy: belongs to profile A; remove it or set PROFILE=A');
  const strangers = entries.filter(
    ({ path, value }) => !KNOWN_PATHS.includes(path) && !(value === null && SECTIONS_OF_OURS.includes(path)),
  );
  const isOurs = ({ path }: YamlEntry) => SECTIONS_OF_OURS.includes(path.split('.')[0] ?? '');
  for (const { path, line } of strangers.filter(isOurs))
    problems.push(`${path}: line ${line}: is not a setting; correct or remove it`);
  if (problems.length > 0)
    throw new ConfigurationError(problems.map((problem) => problem.replace(/[^\x20-\x7e]/g, '?')).join('\n'));
  const issuer = settings.issuer ?? `https://${settings.domain}/`;
  const unknown = strangers.filter((entry) => !isOurs(entry)).map(({ path }) => path);
  return { settings: { ...settings, issuer, publicUrl: settings.publicUrl?.replace(/\/$/, '') }, unknown };
}
/** Runs an action; a failure of the expected class becomes a problem. */
const collecting =
  (problems: string[]) =>
  <Result>(label: string, expected: new () => Error, action: () => Result): Result | undefined => {
    try {
      return action();
    } catch (failure) {
      if (!(failure instanceof expected)) throw failure;
      problems.push(`${label}: ${'code' in failure ? `cannot be read (${failure.code})` : failure.message}`);
      return undefined;
    }
  };
/** An empty value counts as absent. */
const isSet = (raw: RawValue | undefined): raw is RawValue => raw !== undefined && raw !== null && raw !== '';
/** The bounded text of a file without byte-order mark; nothing when it is absent and not demanded. */
function readText(file: string, isDemanded: boolean): string {
  const text = isDemanded || existsSync(file) ? decodeUtf8(readFileSync(file)) : '';
  if (text === undefined) throw new Error('is not UTF-8');
  if (text.length > 1_000_000) throw new Error('is longer than a million characters; shorten it');
  return text.replace(/^\uFEFF/, '');
}
