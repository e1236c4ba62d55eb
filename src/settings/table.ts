// The settings that every service and gate has: names, reader, default. settings/option-settings.ts has those of the
// options, profiles/settings.ts those of the profiles. Does not know where values come from.
import { LOG_LEVELS } from '../verify/base/events.ts';
import { ALGORITHM_NAMES, type Algorithm } from '../verify/keys/jwk.ts';
import { throwProblem } from './entry.ts';
import {
  algorithms,
  textWithoutBlanks,
  boolean,
  host,
  httpsUrl,
  integer,
  issuerUrl,
  list,
  urlPrefix,
  publicUrl,
  secret,
  text,
  word,
  type Earlier,
  type Reader,
} from './readers.ts';

/** Empty where a setting has no such name. */
export interface Names {
  readonly env: string;
  /** Keys joined by dots. */
  readonly yaml: string;
}

export interface Setting<Value> extends Names {
  readonly read: Reader<Value>;
  /** Throws `SettingProblem` if the setting is required. */
  readonly byDefault: (earlier: Earlier) => Value;
}

/** In reading order: see `Earlier`. */
export type SettingsTable<Values> = { readonly [Name in keyof Values]: Setting<Values[Name]> };

export const derived = <Value>(
  env: string,
  yaml: string,
  read: Reader<Value>,
  byDefault: (earlier: Earlier) => Value,
): Setting<Value> => ({ env, yaml, read, byDefault });

export const setting = <Value>(env: string, yaml: string, read: Reader<Value>, byDefault: Value) =>
  derived(env, yaml, read, () => byDefault);

export const DEFAULT_ALGORITHMS: readonly Algorithm[] = ['RS256'];

const required = <Value>(env: string, yaml: string, read: Reader<Value>, problem: string) =>
  derived(env, yaml, read, () => throwProblem(problem));

const NO_DOMAIN = 'the issuer base URL is required; set this to its host name';
const NO_AUDIENCE = 'the audience is required; set this to the identifier of this API at the provider';

/** With the names for the first issuer; names.ts derives the others. */
export const ISSUER_SETTINGS = {
  domain: required('IDP_DOMAIN', 'idp.domain', host, NO_DOMAIN),
  audience: required('IDP_AUDIENCE', 'idp.audience', list(textWithoutBlanks, 1), NO_AUDIENCE),
  issuer: derived('IDP_ISSUER', 'idp.issuer', issuerUrl, ({ domain }) =>
    domain === undefined ? '' : `https://${domain}/`,
  ),
  jwksUri: setting('IDP_JWKS_URI', 'idp.jwksUri', httpsUrl, undefined),
  claimNamespace: setting('IDP_CLAIM_NAMESPACE', 'idp.claimNamespace', urlPrefix, ''),
  scopeClaim: setting('IDP_SCOPE_CLAIM', 'idp.scopeClaim', textWithoutBlanks, 'scope'),
  tokenType: setting('IDP_TOKEN_TYPE', 'idp.tokenType', word('any', 'at+jwt'), 'any'),
  algorithms: setting('IDP_ALGORITHMS', 'idp.algorithms', algorithms, DEFAULT_ALGORITHMS),
  requiredClaims: setting('IDP_REQUIRED_CLAIMS', 'idp.requiredClaims', list(textWithoutBlanks), []),
};

const dpopMode = word('DISABLED', 'ALLOWED', 'REQUIRED');

const withoutLastSlash: Reader<string> = (raw) => publicUrl(raw).replace(/\/$/, '');

export const BASIC_SETTINGS = {
  port: setting('PORT', 'server.port', integer(0, 65535), 3001),
  host: setting('HOST', 'server.host', textWithoutBlanks, undefined),
  springApplicationName: setting('', 'spring.application.name', text, 'gatehouse'),
  applicationName: derived('', 'application.name', text, ({ springApplicationName }) =>
    String(springApplicationName),
  ),
  dpopMode: setting('IDP_DPOP_MODE', 'idp.dpopMode', dpopMode, 'ALLOWED'),
  dpopIatOffsetSeconds: setting(
    'IDP_DPOP_IAT_OFFSET_SECONDS',
    'idp.dpopIatOffsetSeconds',
    integer(0, 1e9),
    300,
  ),
  dpopAlgorithms: setting('IDP_DPOP_ALGORITHMS', 'idp.dpopAlgorithms', algorithms, ALGORITHM_NAMES),
  dpopIatLeewaySeconds: setting(
    'IDP_DPOP_IAT_LEEWAY_SECONDS',
    'idp.dpopIatLeewaySeconds',
    integer(0, 1e9),
    30,
  ),
  dpopNonceSecret: setting('IDP_DPOP_NONCE_SECRET', 'idp.dpopNonceSecret', secret, undefined),
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
  errorDetail: setting('ERROR_DETAIL', 'api.errorDetail', boolean, false),
  publicUrl: setting('PUBLIC_URL', 'api.publicUrl', withoutLastSlash, undefined),
  trustProxy: setting('TRUST_PROXY', 'api.trustProxy', boolean, false),
  bodyLimitBytes: setting('BODY_LIMIT_BYTES', 'api.bodyLimitBytes', integer(1, 16_777_216), 102_400),
  handlerTimeoutSeconds: setting(
    'HANDLER_TIMEOUT_SECONDS',
    'server.handlerTimeoutSeconds',
    integer(0, 3600),
    30,
  ),
  shutdownDelaySeconds: setting('SHUTDOWN_DELAY_SECONDS', 'server.shutdownDelaySeconds', integer(0, 60), 0),
  logLevel: setting('LOG_LEVEL', 'log.level', word(...LOG_LEVELS), 'info'),
  accessLog: setting('ACCESS_LOG', 'log.access', boolean, false),
};
