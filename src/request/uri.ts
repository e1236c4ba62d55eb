// The URI of a request as its caller sees it, and the normal form in which a proof's `htu` is compared with it. Trusts PUBLIC_URL,
// and X-Forwarded-* only under TRUST_PROXY. Promises: equal normal forms only if RFC 3986 §6.2.2 and §6.2.3 make them equivalent.
import { refuseRequest } from '../base/refusal.ts';
import { fieldValues } from '../sender/credentials.ts';

/** How callers reach the service; settings decide. `publicUrl` has no trailing slash. */
export type UriRules = Readonly<{ publicUrl: string | undefined; trustProxy: boolean }>;
/** RFC 9110 §7.2, RFC 3986 §3.2.2: a host name, an IPv4 or a bracketed IPv6 address, and an optional port. */
const HOST = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;
/** URL knows what is a port and what is an IPv6 address. */
const isHost = (text: string) => HOST.test(text) && URL.canParse(`http://${text}`);
let lastGoodHost: string | undefined;
/** The one good Host of a request (RFC 9112 §3.2). Throws `Refused`. */
export function checkHost(rawHeaders: readonly string[]): string {
  const [host = '', ...others] = fieldValues(rawHeaders, 'host');
  // Nearly every request names the same one, whose form need not be judged again.
  if (others.length > 0 || (host !== lastGoodHost && !isHost(host))) throw refuseRequest('host-refused');
  return (lastGoodHost = host);
}
/** The normal form of the URI that was asked for, without its query; `path` as it stands in the request. Throws `Refused`. */
export function requestUri(
  rawHeaders: readonly string[],
  path: string,
  { publicUrl, trustProxy }: UriRules,
): string | undefined {
  if (publicUrl !== undefined) return normalUri(publicUrl + path);
  const lastHop = (name: string) =>
    trustProxy ? fieldValues(rawHeaders, name).join(',').split(',').at(-1)?.trim() : '';
  const scheme = lastHop('x-forwarded-proto') || 'http';
  const host = lastHop('x-forwarded-host') || checkHost(rawHeaders);
  if (!/^https?$/i.test(scheme) || !isHost(host)) throw refuseRequest('forwarded-refused');
  return normalUri(`${scheme}://${host}${path}`);
}
const URI =
  /^https?:\/\/([a-z0-9._~-]+|\[[0-9a-f:.]+\])(?::\d{0,5})?(?:\/(?:[\w.~!$&'()*+,;=:@/-]|%[0-9a-f]{2})*)?(?:\?[^#]*)?(?:#.*)?$/i;
/** The normal form of an absolute http(s) URI without query and fragment (RFC 9449 §4.3(9)); `undefined` for other text.
 * URL does scheme, host, default port, dot segments and the empty path (RFC 3986 §6.2.2.1, §6.2.2.3, §6.2.3). */
export function normalUri(text: string): string | undefined {
  const host = URI.exec(text)?.[1];
  // URL would also rewrite addresses such as `127.1`, which RFC 3986 does not.
  if (host === undefined || !URL.canParse(text) || new URL(text).hostname !== host.toLowerCase())
    return undefined;
  const { origin, pathname } = new URL(text);
  return origin + pathname.replace(/%../g, normalEscape);
}
/** RFC 3986 §6.2.2.1 and §6.2.2.2 */
function normalEscape(escape: string): string {
  const character = decodeURIComponent(/[2-7]/.test(escape[1] ?? '') ? escape : '%25');
  return /[A-Za-z0-9._~-]/.test(character) ? character : escape.toUpperCase();
}
