// The settings of the options: names, readers, defaults. A gate loads this file only if one is set.
import { undefinedOn } from '../verify/base/encoding.ts';
import { throwProblem } from '../process/settings/entry.ts';
import {
  boolean,
  fitting,
  httpsUrl,
  integer,
  list,
  matching,
  publicUrl,
  text,
  textWithoutBlanks,
  type Earlier,
} from '../process/settings/readers.ts';
import { derived, setting } from '../process/settings/table.ts';

const isDecodable = (value: string) =>
  URL.canParse(value) && undefinedOn('URIError', () => decodeURIComponent(value)) !== undefined;

export const storeAddress = matching(
  /^rediss?:\/\/([^\s:@/?#]*:[^\s@/?#]+@)?([\w.-]+|\[[0-9a-f:.]+\])(:[1-9]\d*)?(\/\d{0,9})?$/i,
  'must be redis://[[user]:password@]host[:port][/database], or rediss://, with special characters as %XX',
  isDecodable,
);

/** Refuses backslashes, which URL reads as slashes. */
export const proxyAddress = matching(
  /^http:\/\/([^\s:@/?#\\]+(:[^\s@/?#\\]*)?@)?([\w.-]+|\[[0-9a-f:.]+\])(:[1-9]\d*)?\/?$/i,
  'must be http://[user[:password]@]host[:port], with special characters as %XX',
  isDecodable,
);

const replayStore = fitting(
  storeAddress,
  'has no use while the DPoP mode is DISABLED; remove it or set the mode',
  (_, earlier) => earlier.dpopMode !== 'DISABLED',
);

/**
 * The identifier of a protected resource (RFC 9728 §1.2). Names under `localhost` are loopback (RFC 6761
 * §6.3). Stricter: no slash at the end of a path (RFC 9728 §3.1): clients differ in what they then request.
 */
const RESOURCE =
  /^(https:\/\/[^/]+|http:\/\/(([\w-]+\.)*localhost|127(\.\d+){3}|\[::1\])(:\d+)?)\/([^=]*[^=/])?$/;

export const resourceUrl = fitting(
  publicUrl,
  'must be https:// (http:// on loopback), with the origin of the public URL, no "=", no "/" after a path',
  (value, { publicUrl: shown = value }) => {
    const { href, origin } = new URL(value);
    return RESOURCE.test(href) && new URL(String(shown)).origin === origin;
  },
);

/** A scope-token (RFC 6749 §3.3), neither `openid` nor `offline_access`. */
export const resourceScope = matching(
  /^(?!(openid|offline_access)$)[\x21\x23-\x5b\x5d-\x7e]+$/,
  'must be a scope of this API, without white space, \'"\' or "\\"; neither openid nor offline_access',
);

/**
 * An origin, spelled exactly as browsers and the web views of apps send it (RFC 6454 §6.2). Stricter: no
 * `file`, whose origin is shared by every file. A `*` stands for one label; at least two others follow it.
 */
export const origin = matching(
  /^(?!file:)[a-z][a-z0-9+.-]*:\/\/(?!\.|.*\.\.)(?:\*\.(?=[^.:]+\.[^.:]))?[a-z0-9._~:[\]-]+$/,
  'must be an origin as browsers send it: scheme (not file), lower-case host, port unless default; ' +
    'no final "/", no "*" but for the first of three or more labels',
  isOrigin,
);

function isOrigin(value: string) {
  const example = value.replace('*', 'any');
  if (!URL.canParse(example)) return false;

  const { protocol, host } = new URL(example);
  return `${protocol}//${host}` === example;
}

/** RFC 9110 §9.1. */
export const methodName = matching(/^[A-Z]+$/, 'must be a method name in upper case');

/** RFC 9110 §5.1. Stricter: not `*`, which would mean every field. */
export const fieldName = matching(
  /^[\w!#$%&'+.^`|~-]+$/,
  'must be the name of a header field; list each, without "*"',
);

const metricsPort = fitting(
  integer(0, 65535),
  'is the port of the service itself; choose another',
  (port, earlier) => port === 0 || port !== earlier.port,
);

export const OPTION_SETTINGS = {
  dpopReplayStore: setting('IDP_DPOP_REPLAY_STORE', 'idp.dpopReplayStore', replayStore, undefined),
  proxy: setting('IDP_PROXY', 'idp.proxy', proxyAddress, undefined),
  resourceScopes: setting('RESOURCE_SCOPES', 'resource.scopes', list(resourceScope, 1), undefined),
  resourceName: setting('RESOURCE_NAME', 'resource.name', text, undefined),
  resourceDocumentation: setting('RESOURCE_DOCUMENTATION', 'resource.documentation', httpsUrl, undefined),
  resourceUrl: derived('RESOURCE_URL', 'resource.url', resourceUrl, noResourceUrl),
  corsAllowedOrigins: setting('CORS_ALLOWED_ORIGINS', 'cors.allowedOrigins', list(origin), []),
  corsAllowCredentials: setting('CORS_ALLOW_CREDENTIALS', 'cors.allowCredentials', boolean, true),
  corsAllowedMethods: setting('CORS_ALLOWED_METHODS', 'cors.allowedMethods', list(methodName), []),
  corsAllowedHeaders: setting('CORS_ALLOWED_HEADERS', 'cors.allowedHeaders', list(fieldName), []),
  corsExposedHeaders: setting('CORS_EXPOSED_HEADERS', 'cors.exposedHeaders', list(fieldName), []),
  metricsPort: setting('METRICS_PORT', 'metrics.port', metricsPort, undefined),
  metricsHost: setting('METRICS_HOST', 'metrics.host', textWithoutBlanks, undefined),
};

/** The other settings of a resource need its URL. `earlier` lacks those with a problem. */
function noResourceUrl(earlier: Earlier) {
  const more = ['resourceScopes', 'resourceName', 'resourceDocumentation'];
  return more.every((name) => name in earlier && earlier[name] === undefined)
    ? undefined
    : throwProblem('is required by the scopes, name and documentation of a resource; set it or remove those');
}
