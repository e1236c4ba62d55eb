// Header fields as they came: the raw list → values, and the one good Host of every request. Reads the raw
// list, because Node's `headers` hides a second Authorization field and joins DPoP fields. Does not read
// credentials: sender/ does.
import { refuse } from '../base/refusal.ts';

/**
 * Every value of a header field; `rawHeaders` lists names and values in turn, `name` is in lower case (RFC
 * 9110 §5.1).
 */
export function fieldValues(rawHeaders: readonly string[], name: string): string[] {
  const values: string[] = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const field = rawHeaders[index] ?? '';
    if (field.toLowerCase() === name) values.push(rawHeaders[index + 1] ?? '');
  }
  return values;
}

/**
 * W3C Trace Context §3.2.2, §4.3: no ids of zeros; version 00 ends after 55 characters, later ones may go
 * on.
 */
const TRACEPARENT =
  /^(?!ff|00.{54})[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?$/;

/** The one `traceparent` of a request, if it is well-formed. */
export function traceparentOf(rawHeaders: readonly string[]): string | undefined {
  const [value = '', ...others] = fieldValues(rawHeaders, 'traceparent');
  return others.length === 0 && TRACEPARENT.test(value) ? value : undefined;
}

/**
 * RFC 9110 §7.2, RFC 3986 §3.2.2, §3.2.3: a host name of at most 255 characters, an IPv4 or a bracketed IPv6
 * address, and an optional port, which may be empty. With a longer name URL would keep Node 20 and 22 busy
 * for milliseconds.
 */
const HOST = /^(?:[a-z0-9._~-]{1,255}|\[[0-9a-f:.]+\])(?::\d{0,5})?$/i;

/**
 * Whether the text is a host with an optional port; URL knows what is a port and what is an IPv6 address.
 */
export const isHost = (text: string) => HOST.test(text) && URL.canParse(`http://${text}`);

/**
 * Gives a reader of the one good Host of a request (RFC 9112 §3.2), which judges a host once while requests
 * go on naming it, as nearly all do. Without one it gives nothing: RFC 9112 §3.2 asks only HTTP/1.1 for it,
 * and the probes of some load balancers have none.
 */
export function createHostReader() {
  let lastGoodHost: string | undefined;

  return (rawHeaders: readonly string[], httpVersion = '1.1') => {
    const [host, ...others] = fieldValues(rawHeaders, 'host');
    if (host === undefined && httpVersion === '1.0') return undefined;

    const isGood = host !== undefined && (host === lastGoodHost || isHost(host));
    if (others.length > 0 || !isGood) return refuse('host-refused');

    lastGoodHost = host;
    return host;
  };
}
