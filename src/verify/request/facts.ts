// What a request says of itself before anything is checked: method, Host, path, credentials and other fields,
// from the raw list, as Node's `headers` hides a second Authorization field; and its URI, to compare with a
// proof's `htu`. A service finds its routes by decoded segments; a policy refuses paths that servers read in
// several ways; a gate refuses dot segments alone, as the server behind it routes by the path as sent. Never
// parses a target as a URL: `//host/x` would change the host. Never reads a token from query or body
// (RFC 9700 §4.3.2), and checks none: verify/token/verify.ts does.
import { catching } from '../base/encoding.ts';
import { refuse, Refused } from '../base/refusal.ts';

export interface RawRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  /** What the client sent, where a framework rewrites `url`. */
  readonly originalUrl?: string | undefined;
  readonly rawHeaders: readonly string[];
  readonly httpVersion?: string | undefined;
  readonly socket?: unknown;
}

/** `path` is not decoded. */
export interface RequestFacts {
  readonly method: string;
  /** HTTP/1.0 may have none, and a proxy's question has `uri`. */
  readonly host?: string | undefined;
  readonly path: string;
  readonly rawHeaders: readonly string[];
  /**
   * Whose peer and certificate a part may ask for. A Fetch `Request` and some adapters have none; one value
   * may then be several fields, joined with a comma and a space, and trimmed.
   */
  readonly socket?: unknown;
  /** The URI that a proxy asks about, used in place of `host`. */
  readonly uri?: () => string | Refused;
}

export function readFacts(request: RawRequest): RequestFacts | Refused {
  const { method = '', url = '', originalUrl = url, rawHeaders, httpVersion, socket } = request;
  const host = readHost(rawHeaders, httpVersion);
  if (host instanceof Refused) return host;

  const path = originPath(originalUrl);
  return path instanceof Refused ? path : { method, host, path, rawHeaders, socket };
}

/** `name` is in lower case (RFC 9110 §5.1). */
export function fieldValues(rawHeaders: readonly string[], name: string): string[] {
  const values: string[] = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const field = rawHeaders[index] ?? '';
    // For speed: lengths cost less to compare than lower case to make.
    const isNamed = field.length === name.length && field.toLowerCase() === name;
    if (isNamed) values.push(rawHeaders[index + 1] ?? '');
  }
  return values;
}

/**
 * RFC 9110 §7.2, RFC 3986 §3.2.2, §3.2.3: a name or an address, and an optional port. Stricter: no escapes,
 * and none of `!$&'()*+,;=`. In Node 20 and 22 URL takes milliseconds for longer names.
 */
const AUTHORITY = String.raw`([a-z0-9._~-]{1,255}|\[[0-9a-f:.]+\])(?::\d{0,5})?`;

const HOST = new RegExp(`^${AUTHORITY}$`, 'i');

/** URL checks the port and the IPv6 address. */
const isHost = (text: string) => HOST.test(text) && URL.canParse(`http://${text}`);

/** For speed: most requests repeat it. */
let lastGoodHost: string | undefined;

/** Reads the Host field, which HTTP/1.0 may omit, as some load balancers do (RFC 9112 §3.2). */
export function readHost(rawHeaders: readonly string[], httpVersion = '1.1') {
  const [host, ...others] = fieldValues(rawHeaders, 'host');
  if (host === undefined && httpVersion === '1.0') return undefined;

  const isGood = host !== undefined && (host === lastGoodHost || isHost(host));
  if (!isGood || others.length > 0) return refuse('host-refused');

  lastGoodHost = host;
  return host;
}

/**
 * Blanks and controls, which no request target has (RFC 9112 §3.2). The parser of Node 20.12 lets tabs
 * through, and URL drops them: two dots around a tab would become a dot segment.
 */
const CONTROL = /[\0-\x20\x7f]/;

/** All: accepts only the origin form (RFC 9112 §3.2.1), and drops the query. */
export function originPath(target: string): string | Refused {
  // Stricter: RFC 9112 §3.2.2 has servers accept the absolute form.
  if (target[0] !== '/' || CONTROL.test(target)) return refuse('target-refused');

  const end = target.indexOf('?');
  return end < 0 ? target : target.slice(0, end);
}

/** A whole dot segment, plain or escaped, before a query or fragment; or a blank or control character. */
const AMENDED = /^(?:[^?#]*[/\\])?(?:\.|%2e){1,2}(?:[/\\?#]|$)|[\0-\x20\x7f]/i;

/**
 * Gate: what URL would amend. A proof covers the path without dot segments (RFC 3986 §5.2.4). Some servers
 * keep them in a Request's `url`, and route by the part before `#`. URL reads `\` as `/`.
 */
export const isAmended = (target: string): boolean => AMENDED.test(target);

/**
 * Stricter: RFC 3986 §3.3 sets no limit. A request line can hold 8,000, which would cost as much as twenty
 * requests.
 */
const MAX_SEGMENTS = 100;

/**
 * Service and policy: percent-decoded, none for `/`. An encoded slash stays inside its segment. `undefined`
 * for a broken escape (RFC 3986 §2.1), an empty segment, a dot segment (§3.3), or too many: one canonical
 * form, or none.
 */
export function pathSegments(path: string): readonly string[] | undefined {
  if (path === '/') return [];

  const escaped = path.slice(1).split('/', MAX_SEGMENTS + 1);
  if (escaped.length > MAX_SEGMENTS) return undefined;

  // For speed: most paths have no escape.
  const isPlain = !path.includes('%');
  const segments = isPlain ? escaped : catching('URIError', () => escaped.map(decodeURIComponent));
  return segments?.some(isEmptyOrDots) ? undefined : segments;
}

const isEmptyOrDots = (segment: string) => segment === '' || segment === '.' || segment === '..';

/** Stricter: what servers read in several ways, plain or escaped, and control characters. */
const AMBIGUOUS = /[^!-~]|[#\\;]|%(?:2f|5c|3b|3f|23|25|[01][\da-f]|7f|c2%[89][\da-f])/i;

/** Policy: what a server behind a proxy makes of such a path is not known here. */
export const isAmbiguous = (path: string) => AMBIGUOUS.test(path);

/** Bearer only, both, DPoP only. */
export type DpopMode = 'DISABLED' | 'ALLOWED' | 'REQUIRED';
/** RFC 6750 §2.1, RFC 9449 §7.1 */
export type Scheme = 'Bearer' | 'DPoP';

export const SCHEMES: Readonly<Record<DpopMode, readonly Scheme[]>> = {
  DISABLED: ['Bearer'],
  ALLOWED: ['Bearer', 'DPoP'],
  REQUIRED: ['DPoP'],
};

export interface Credentials {
  readonly scheme: Scheme;
  readonly token: string;
  readonly proof: string | undefined;
}

/** The scheme of an Authorization field, in any letter case (RFC 9110 §5.6.2, §11.1). */
export function acceptedScheme(authorization: string, mode: DpopMode): Scheme | undefined {
  const name = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+/.exec(authorization)?.[0].toLowerCase();
  return SCHEMES[mode].find((scheme) => scheme.toLowerCase() === name);
}

/** Returns `undefined` without an Authorization field. */
export function parseCredentials(rawHeaders: readonly string[], mode: DpopMode) {
  const [authorization, secondAuthorization] = fieldValues(rawHeaders, 'authorization');
  // RFC 9110 §5.3
  if (secondAuthorization !== undefined) return refuse('authorization-repeated');
  if (authorization === undefined) return undefined;

  const scheme = acceptedScheme(authorization, mode);
  if (scheme === undefined || authorization.length === scheme.length) return refuse('scheme-refused');

  const [proof, secondProof] = mode === 'DISABLED' ? [] : fieldValues(rawHeaders, 'dpop');
  // RFC 9449 §4.3(1)
  if (scheme === 'DPoP' && secondProof !== undefined) return refuse('proof-repeated');

  // Stricter: RFC 6750 §2.1 and RFC 9110 §11.4 allow several spaces before the token.
  const token = authorization.slice(scheme.length + 1);
  if (authorization[scheme.length] !== ' ' || !isToken(token)) return refuse('credentials-malformed');

  // Stricter: RFC 9449 leaves this case open.
  if (scheme === 'Bearer' && proof !== undefined) return refuse('proof-beside-bearer');

  return { scheme, token, proof };
}

/** The white space of Latin-1, in which Node reads fields, and the comma, which would begin another token. */
const SEPARATORS = [...' ,\t\n\v\f\r\u00a0'];

/** For speed: a regular expression would take 7 % of a request whose token is cached. */
function isToken(text: string) {
  for (const separator of SEPARATORS) {
    if (text.includes(separator)) return false;
  }
  return text !== '';
}

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

/**
 * The requested URI as its client sees it, without query, not normalized. Trusts PUBLIC_URL, or without it
 * X-Forwarded-* under TRUST_PROXY, else Host. No `htu` matches `undefined`.
 */
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

const PATH = String.raw`(?:\/(?:[\w.~!$&'()*+,;=:@/-]|%[0-9a-f]{2})*)?`;
const URI = new RegExp(String.raw`^https?:\/\/${AUTHORITY}${PATH}(?:\?[^#]*)?(?:#.*)?$`, 'i');

/**
 * RFC 9449 §4.3(9), RFC 3986 §6.2.1: compared as written, then normalized if possible. Promises: URIs are the
 * same only if RFC 3986 §6.2.1 to §6.2.3 make them equivalent.
 */
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
