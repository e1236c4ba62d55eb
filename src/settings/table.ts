// Every setting of the service itself: its names, its reader, its default. Does not know where values are.
// A table of routes of one's own has these and no others; the profiles add theirs in profiles/settings.ts.
import { LOG_LEVELS } from '../base/events.ts';
import { refuse } from './entry.ts';
import {
  textWithoutBlanks,
  boolean,
  fieldName,
  fitting,
  host,
  httpsUrl,
  integer,
  issuerUrl,
  list,
  methodName,
  origin,
  urlPrefix,
  proxyAddress,
  publicUrl,
  resourceUrl,
  resourceScope,
  secret,
  storeAddress,
  text,
  word,
  type Earlier,
  type Reader,
} from './readers.ts';

/** What a setting is called; empty for nothing. */
export interface Names {
  /** In the environment and in `.env`. */
  readonly env: string;
  /** In YAML, its keys joined by dots. */
  readonly yaml: string;
}

export interface Setting<Value> extends Names {
  readonly read: Reader<Value>;
  /** Throws `Fault` when the setting is required. */
  readonly byDefault: (earlier: Earlier) => Value;
}

/** Settings by the names that code has for them, in the order in which they are read. */
export type Table<Values> = { readonly [Name in keyof Values]: Setting<Values[Name]> };

export const setting = <Value>(
  env: string,
  yaml: string,
  read: Reader<Value>,
  byDefault: Value,
): Setting<Value> => ({ env, yaml, read, byDefault: () => byDefault });

/** What each issuer has for itself; the names are those of the first. */
export const ISSUER = {
  domain: {
    env: 'IDP_DOMAIN',
    yaml: 'idp.domain',
    read: host,
    byDefault: () =>
      refuse('the issuer base URL is required; set it to the host name of the identity provider'),
  },
  audience: {
    env: 'IDP_AUDIENCE',
    yaml: 'idp.audience',
    read: list(textWithoutBlanks, 1),
    byDefault: () => refuse('the audience is required; set it to the identifier of this API at the provider'),
  },
  issuer: {
    env: 'IDP_ISSUER',
    yaml: 'idp.issuer',
    read: issuerUrl,
    byDefault: ({ domain }: Earlier) => (domain === undefined ? '' : `https://${domain}/`),
  },
  jwksUri: setting('IDP_JWKS_URI', 'idp.jwksUri', httpsUrl, undefined),
  claimNamespace: setting('IDP_CLAIM_NAMESPACE', 'idp.claimNamespace', urlPrefix, ''),
  scopeClaim: setting('IDP_SCOPE_CLAIM', 'idp.scopeClaim', textWithoutBlanks, 'scope'),
  tokenType: setting('IDP_TOKEN_TYPE', 'idp.tokenType', word('any', 'at+jwt'), 'any'),
  requiredClaims: setting('IDP_REQUIRED_CLAIMS', 'idp.requiredClaims', list(textWithoutBlanks), []),
};

const replayStore = fitting(
  storeAddress,
  'has no use while IDP_DPOP_MODE is DISABLED; remove it or set the mode',
  (_, { dpopMode }) => dpopMode !== 'DISABLED',
);

const ownResourceUrl = fitting(
  resourceUrl,
  'has another origin than PUBLIC_URL; write both as callers see the service',
  (url, { publicUrl }) => new URL(String(publicUrl ?? url)).origin === new URL(url).origin,
);

const metricsPort = fitting(
  integer(0, 65535),
  'is the port of the service itself; choose another',
  (port, earlier) => port === 0 || port !== earlier.port,
);

export const TABLE = {
  port: setting('PORT', 'server.port', integer(0, 65535), 3001),
  host: setting('HOST', 'server.host', textWithoutBlanks, undefined),
  springApplicationName: setting('', 'spring.application.name', text, 'gatehouse'),
  applicationName: {
    env: '',
    yaml: 'application.name',
    read: text,
    byDefault: ({ springApplicationName }: Earlier) => String(springApplicationName),
  },
  dpopMode: setting('IDP_DPOP_MODE', 'idp.dpopMode', word('DISABLED', 'ALLOWED', 'REQUIRED'), 'DISABLED'),
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
  dpopNonceSecret: setting('IDP_DPOP_NONCE_SECRET', 'idp.dpopNonceSecret', secret, undefined),
  dpopReplayStore: setting('IDP_DPOP_REPLAY_STORE', 'idp.dpopReplayStore', replayStore, undefined),
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
  proxy: setting('IDP_PROXY', 'idp.proxy', proxyAddress, undefined),
  errorDetail: setting('ERROR_DETAIL', 'api.errorDetail', boolean, false),
  publicUrl: setting('PUBLIC_URL', 'api.publicUrl', (raw) => publicUrl(raw).replace(/\/$/, ''), undefined),
  trustProxy: setting('TRUST_PROXY', 'api.trustProxy', boolean, false),
  resourceScopes: setting('RESOURCE_SCOPES', 'resource.scopes', list(resourceScope, 1), undefined),
  resourceName: setting('RESOURCE_NAME', 'resource.name', text, undefined),
  resourceDocumentation: setting('RESOURCE_DOCUMENTATION', 'resource.documentation', httpsUrl, undefined),
  resourceUrl: { env: 'RESOURCE_URL', yaml: 'resource.url', read: ownResourceUrl, byDefault: noResourceUrl },
  corsAllowedOrigins: setting('CORS_ALLOWED_ORIGINS', 'cors.allowedOrigins', list(origin), []),
  corsAllowCredentials: setting('CORS_ALLOW_CREDENTIALS', 'cors.allowCredentials', boolean, true),
  corsAllowedMethods: setting('CORS_ALLOWED_METHODS', 'cors.allowedMethods', list(methodName), []),
  corsAllowedHeaders: setting('CORS_ALLOWED_HEADERS', 'cors.allowedHeaders', list(fieldName), []),
  corsExposedHeaders: setting('CORS_EXPOSED_HEADERS', 'cors.exposedHeaders', list(fieldName), []),
  bodyLimitBytes: setting('BODY_LIMIT_BYTES', 'api.bodyLimitBytes', integer(1, 16_777_216), 102_400),
  handlerTimeoutSeconds: setting(
    'HANDLER_TIMEOUT_SECONDS',
    'server.handlerTimeoutSeconds',
    integer(0, 3600),
    30,
  ),
  shutdownDelaySeconds: setting('SHUTDOWN_DELAY_SECONDS', 'server.shutdownDelaySeconds', integer(0, 60), 0),
  metricsPort: setting('METRICS_PORT', 'metrics.port', metricsPort, undefined),
  metricsHost: setting('METRICS_HOST', 'metrics.host', textWithoutBlanks, undefined),
  logLevel: setting('LOG_LEVEL', 'log.level', word(...LOG_LEVELS), 'info'),
  accessLog: setting('ACCESS_LOG', 'log.access', boolean, false),
};

/** What says more about a resource needs one. */
function noResourceUrl({ resourceScopes, resourceName, resourceDocumentation }: Earlier): string | undefined {
  if ((resourceScopes ?? resourceName ?? resourceDocumentation) === undefined) return undefined;
  refuse('is required by RESOURCE_SCOPES, _NAME and _DOCUMENTATION; set it or remove those');
}
