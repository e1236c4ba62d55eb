// Every setting of the service itself: its names, its reader, its default. Does not know where values are.
// A table of routes of one's own has these and no others; the profiles add theirs in profiles/settings.ts.
import { LOG_LEVELS } from '../../verify/base/events.ts';
import { ALGORITHM_NAMES, type Algorithm } from '../../verify/keys/jwk.ts';
import { throwFault } from './entry.ts';
import {
  algorithms,
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

/**
 * A setting whose default depends on those before it, or is a fault. Without a name of its own in the
 * environment it has that of its keys: `idp.dpopMode` is `IDP_DPOP_MODE`; `server.` and `api.` are left out.
 */
export const derived = <Value>(
  yaml: string,
  read: Reader<Value>,
  byDefault: (earlier: Earlier) => Value,
  env = yaml
    .replace(/^(server|api)\./, '')
    .replace('issuers.', 'issuer.')
    .replace(/\.|(?=[A-Z])/g, '_')
    .toUpperCase(),
): Setting<Value> => ({ env, yaml, read, byDefault });

export const setting = <Value>(yaml: string, read: Reader<Value>, byDefault: Value, env?: string) =>
  derived(yaml, read, () => byDefault, env);

/** Of access tokens, where nothing is set. */
export const DEFAULT_ALGORITHMS: readonly Algorithm[] = ['RS256'];

/** What the issuer of this name has for itself: the first, `idp`, in a section of its own. */
export const issuerTable = (name: string, section = `issuers.${name}.`.replace('issuers.idp.', 'idp.')) => ({
  domain: derived(section + 'domain', host, () =>
    throwFault('the issuer base URL is required; set it to the host name of the identity provider'),
  ),
  audience: derived(section + 'audience', list(textWithoutBlanks, 1), () =>
    throwFault('the audience is required; set it to the identifier of this API at the provider'),
  ),
  issuer: derived(section + 'issuer', issuerUrl, ({ domain }) =>
    domain === undefined ? '' : `https://${domain}/`,
  ),
  jwksUri: setting(section + 'jwksUri', httpsUrl, undefined),
  claimNamespace: setting(section + 'claimNamespace', urlPrefix, ''),
  scopeClaim: setting(section + 'scopeClaim', textWithoutBlanks, 'scope'),
  tokenType: setting(section + 'tokenType', word('any', 'at+jwt'), 'any'),
  algorithms: setting(section + 'algorithms', algorithms, DEFAULT_ALGORITHMS),
  requiredClaims: setting(section + 'requiredClaims', list(textWithoutBlanks), []),
});

const replayStore = fitting(
  storeAddress,
  'has no use while the DPoP mode is DISABLED; remove it or set the mode',
  (_, { dpopMode }) => dpopMode !== 'DISABLED',
);

const metricsPort = fitting(
  integer(0, 65535),
  'is the port of the service itself; choose another',
  (port, earlier) => port === 0 || port !== earlier.port,
);

export const TABLE = {
  port: setting('server.port', integer(0, 65535), 3001),
  host: setting('server.host', textWithoutBlanks, undefined),
  springApplicationName: setting('spring.application.name', text, 'gatehouse', ''),
  applicationName: derived(
    'application.name',
    text,
    ({ springApplicationName }) => String(springApplicationName),
    '',
  ),
  dpopMode: setting('idp.dpopMode', word('DISABLED', 'ALLOWED', 'REQUIRED'), 'DISABLED'),
  dpopAlgorithms: setting('idp.dpopAlgorithms', algorithms, ALGORITHM_NAMES),
  dpopIatOffsetSeconds: setting('idp.dpopIatOffsetSeconds', integer(0, 1e9), 300),
  dpopIatLeewaySeconds: setting('idp.dpopIatLeewaySeconds', integer(0, 1e9), 30),
  dpopNonceSecret: setting('idp.dpopNonceSecret', secret, undefined),
  dpopReplayStore: setting('idp.dpopReplayStore', replayStore, undefined),
  tokenCacheEntries: setting('idp.tokenCacheEntries', integer(0, 1_000_000), 10_000),
  clockToleranceSeconds: setting('idp.clockToleranceSeconds', integer(0, 300), 0),
  proxy: setting('idp.proxy', proxyAddress, undefined),
  errorDetail: setting('api.errorDetail', boolean, false),
  publicUrl: setting('api.publicUrl', (raw) => publicUrl(raw).replace(/\/$/, ''), undefined),
  trustProxy: setting('api.trustProxy', boolean, false),
  resourceScopes: setting('resource.scopes', list(resourceScope, 1), undefined),
  resourceName: setting('resource.name', text, undefined),
  resourceDocumentation: setting('resource.documentation', httpsUrl, undefined),
  resourceUrl: derived('resource.url', resourceUrl, noResourceUrl),
  corsAllowedOrigins: setting('cors.allowedOrigins', list(origin), []),
  corsAllowCredentials: setting('cors.allowCredentials', boolean, true),
  corsAllowedMethods: setting('cors.allowedMethods', list(methodName), []),
  corsAllowedHeaders: setting('cors.allowedHeaders', list(fieldName), []),
  corsExposedHeaders: setting('cors.exposedHeaders', list(fieldName), []),
  bodyLimitBytes: setting('api.bodyLimitBytes', integer(1, 16_777_216), 102_400),
  handlerTimeoutSeconds: setting('server.handlerTimeoutSeconds', integer(0, 3600), 30),
  shutdownDelaySeconds: setting('server.shutdownDelaySeconds', integer(0, 60), 0),
  metricsPort: setting('metrics.port', metricsPort, undefined),
  metricsHost: setting('metrics.host', textWithoutBlanks, undefined),
  logLevel: setting('log.level', word(...LOG_LEVELS), 'info'),
  accessLog: setting('log.access', boolean, false, 'ACCESS_LOG'),
};

/** What says more about a resource needs one, also when it is at fault, and then missing here. */
function noResourceUrl(earlier: Earlier) {
  const more = ['resourceScopes', 'resourceName', 'resourceDocumentation'];
  return more.every((name) => name in earlier && earlier[name] === undefined)
    ? undefined
    : throwFault('is required by the scopes, name and documentation of a resource; set it or remove those');
}
