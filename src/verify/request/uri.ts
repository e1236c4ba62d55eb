// The URI of a request as its client sees it, compared with a proof's `htu`. Trusts PUBLIC_URL, or without it
// X-Forwarded-* under TRUST_PROXY, else Host. Promises: URIs are the same only if RFC 3986 §6.2.1 to §6.2.3
// make them equivalent.
import { refuse, type Refused } from '../base/refusal.ts';
import { fieldValues, isHost, type RequestFacts } from './facts.ts';

/** How clients reach the service. A `publicUrl` that was read has no trailing slash. */
export interface UriOptions {
  /** The origin, and path prefix, under which clients see the service. */
  readonly publicUrl: string | undefined;
  /**
   * Whether to trust the last values of `X-Forwarded-For` and, without `publicUrl`, of `X-Forwarded-Proto`
   * and `X-Forwarded-Host`. Default: `false`.
   */
  readonly trustProxy: boolean;
}

/** The requested URI, without query, not normalized. No `htu` matches `undefined`. */
export function requestUri(
  { host, path, rawHeaders, socket, uri }: RequestFacts,
  { publicUrl, trustProxy }: UriOptions,
): string | Refused | undefined {
  // RFC 9112 §3.2.1: a URI's path ends at `#`, but the router's path does not.
  if (path.includes('#')) return undefined;
  if (publicUrl !== undefined) return publicUrl + path;
  if (uri !== undefined) return uri();

  // Of `node:tls`, as Node's documents say.
  const scheme = Object(socket).encrypted === true ? 'https' : 'http';
  if (!trustProxy) return host && `${scheme}://${host}${path}`;

  const outerScheme = lastHop(rawHeaders, 'x-forwarded-proto') || scheme;
  const outerHost = lastHop(rawHeaders, 'x-forwarded-host') || host;
  if (outerHost === undefined) return undefined;

  return forwardedUri(outerScheme, outerHost, path);
}

/** RFC 6455 §3, §4.1: an upgrade begins as a request of http or https, which some proxies call ws or wss. */
export function forwardedUri(scheme: string, host: string, path: string): string | Refused {
  const isWeb = /^(?:http|ws)s?$/i.test(scheme);
  if (!isWeb || !isHost(host)) return refuse('forwarded-refused');

  return `${scheme.replace(/^ws/i, 'http')}://${host}${path}`;
}

/** From the nearest proxy. */
export function lastHop(rawHeaders: readonly string[], name: string) {
  const hops = fieldValues(rawHeaders, name).join(',').split(',');
  return hops.at(-1)?.trim() ?? '';
}

const AUTHORITY = String.raw`([a-z0-9._~-]{1,255}|\[[0-9a-f:.]+\])(?::\d{0,5})?`;
const PATH = String.raw`(?:\/(?:[\w.~!$&'()*+,;=:@/-]|%[0-9a-f]{2})*)?`;
const URI = new RegExp(String.raw`^https?:\/\/${AUTHORITY}${PATH}(?:\?[^#]*)?(?:#.*)?$`, 'i');

/** RFC 9449 §4.3(9), RFC 3986 §6.2.1: compared as written, then normalized if possible. */
export function isSameUri(htu: unknown, uri: string | undefined): boolean {
  if (typeof htu !== 'string' || uri === undefined) return false;
  if (htu === uri) return true;

  const normal = normalUri(uri);
  return normal !== undefined && normalUri(htu) === normal;
}

/**
 * Normalizes an absolute http(s) URI and drops query and fragment (RFC 9449 §4.3(9)). URL normalizes scheme,
 * host, port, dot segments and the empty path (RFC 3986 §6.2.2.1, §6.2.2.3, §6.2.3).
 */
export function normalUri(text: string): string | undefined {
  const host = URI.exec(text)?.[1];
  if (host === undefined || !URL.canParse(text)) return undefined;

  // URL rewrites addresses such as `127.1`; RFC 3986 does not.
  const { hostname, origin, pathname } = new URL(text);
  if (hostname !== host.toLowerCase()) return undefined;

  return origin + pathname.replace(/%../g, normalEscape);
}

/** RFC 3986 §6.2.2.1 and §6.2.2.2 */
function normalEscape(escape: string) {
  const character = String.fromCharCode(parseInt(escape.slice(1), 16));
  return /[A-Za-z0-9._~-]/.test(character) ? character : escape.toUpperCase();
}
