// The settings of the rings: names in the environment and in YAML, and how text becomes a value. The rule and
// the default of each stand in the table of its ring or part; profiles/settings.ts has the settings of the
// profiles. Does not know where values come from.
import { ANSWER_OPTIONS } from '../gate/options.ts';
import { LISTENER_OPTIONS } from '../service/options.ts';
import { option, text as anyText, type Option } from '../verify/base/option.ts';
import { CHECK_OPTIONS, ISSUER_OPTIONS, issuerAt } from '../verify/options.ts';
import { boolean, inLowerCase, integer, inUpperCase, list, text, type Reader } from './readers.ts';

/** Empty where a setting has no such name. */
export interface Names {
  readonly env: string;
  /** Keys joined by dots. */
  readonly yaml: string;
}

/** Earlier settings, without invalid ones. */
export type Earlier = Readonly<Record<string, unknown>>;

export interface Setting<Value> extends Names {
  readonly read: Reader;
  readonly option: Option<Value>;
  /** Imports the option with its rule. Only if the setting is set. */
  readonly load?: () => Promise<Option<Value>>;
  /** In place of the default of the option. Throws `SettingProblem` if the setting is required. */
  readonly byDefault?: (earlier: Earlier) => Value;
  /** What is wrong with a good value beside earlier ones. */
  readonly misfit?: (value: Value, earlier: Earlier) => string | undefined;
}

/** In reading order: see `Earlier`. */
export type SettingsTable<Values> = { readonly [Name in keyof Values]: Setting<Values[Name]> };

export type ValuesOf<Table> = Table extends SettingsTable<infer Values> ? Values : never;

export const setting = <Value>(
  env: string,
  yaml: string,
  read: Reader,
  rule: Option<Value>,
  more: Pick<Setting<Value>, 'byDefault' | 'misfit'> = {},
): Setting<Value> => ({ env, yaml, read, option: rule, ...more });

const {
  domain,
  audience,
  issuer,
  jwksUri,
  claimNamespace,
  scopeClaim,
  tokenType,
  algorithms,
  requiredClaims,
} = ISSUER_OPTIONS;

/** With the names for the first issuer; names.ts derives the others. */
export const ISSUER_SETTINGS = {
  domain: setting('IDP_DOMAIN', 'idp.domain', text, domain),
  audience: setting('IDP_AUDIENCE', 'idp.audience', list(1), audience),
  issuer: setting('IDP_ISSUER', 'idp.issuer', text, issuer, { byDefault: usualIssuer }),
  jwksUri: setting('IDP_JWKS_URI', 'idp.jwksUri', text, jwksUri),
  claimNamespace: setting('IDP_CLAIM_NAMESPACE', 'idp.claimNamespace', text, claimNamespace),
  scopeClaim: setting('IDP_SCOPE_CLAIM', 'idp.scopeClaim', text, scopeClaim),
  tokenType: setting('IDP_TOKEN_TYPE', 'idp.tokenType', inLowerCase, tokenType),
  algorithms: setting('IDP_ALGORITHMS', 'idp.algorithms', list(1), algorithms),
  requiredClaims: setting('IDP_REQUIRED_CLAIMS', 'idp.requiredClaims', list(), requiredClaims),
};

function usualIssuer({ domain: known }: Earlier) {
  return typeof known === 'string' ? issuerAt(known) : undefined;
}

const ofListener = LISTENER_OPTIONS;
const ofCheck = CHECK_OPTIONS;

export const RING_SETTINGS = {
  port: setting('PORT', 'server.port', integer, ofListener.port),
  host: setting('HOST', 'server.host', text, ofListener.host),
  springApplicationName: setting('', 'spring.application.name', text, option(anyText, 'gatehouse')),
  applicationName: setting('', 'application.name', text, option(anyText, ''), {
    byDefault: ({ springApplicationName }) => String(springApplicationName),
  }),
  dpopMode: setting('IDP_DPOP_MODE', 'idp.dpopMode', inUpperCase, ofCheck.dpopMode),
  dpopIatOffsetSeconds: setting(
    'IDP_DPOP_IAT_OFFSET_SECONDS',
    'idp.dpopIatOffsetSeconds',
    integer,
    ofCheck.dpopIatOffsetSeconds,
  ),
  dpopAlgorithms: setting('IDP_DPOP_ALGORITHMS', 'idp.dpopAlgorithms', list(1), ofCheck.dpopAlgorithms),
  dpopIatLeewaySeconds: setting(
    'IDP_DPOP_IAT_LEEWAY_SECONDS',
    'idp.dpopIatLeewaySeconds',
    integer,
    ofCheck.dpopIatLeewaySeconds,
  ),
  dpopNonceSecret: setting('IDP_DPOP_NONCE_SECRET', 'idp.dpopNonceSecret', text, ofCheck.dpopNonceSecret),
  tokenCacheEntries: setting(
    'IDP_TOKEN_CACHE_ENTRIES',
    'idp.tokenCacheEntries',
    integer,
    ofCheck.tokenCacheEntries,
  ),
  clockToleranceSeconds: setting(
    'IDP_CLOCK_TOLERANCE_SECONDS',
    'idp.clockToleranceSeconds',
    integer,
    ofCheck.clockToleranceSeconds,
  ),
  errorDetail: setting('ERROR_DETAIL', 'api.errorDetail', boolean, ANSWER_OPTIONS.errorDetail),
  publicUrl: setting('PUBLIC_URL', 'api.publicUrl', text, ofCheck.publicUrl),
  trustProxy: setting('TRUST_PROXY', 'api.trustProxy', boolean, ofCheck.trustProxy),
  bodyLimitBytes: setting('BODY_LIMIT_BYTES', 'api.bodyLimitBytes', integer, ofListener.bodyLimitBytes),
  handlerTimeoutSeconds: setting(
    'HANDLER_TIMEOUT_SECONDS',
    'server.handlerTimeoutSeconds',
    integer,
    ofListener.handlerTimeoutSeconds,
  ),
  shutdownDelaySeconds: setting(
    'SHUTDOWN_DELAY_SECONDS',
    'server.shutdownDelaySeconds',
    integer,
    ofListener.shutdownDelaySeconds,
  ),
};
