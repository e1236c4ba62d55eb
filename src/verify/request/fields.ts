// Reads header fields from the raw list: Node's `headers` hides a second Authorization field and joins DPoP
// fields. Does not read credentials: verify/credentials.ts does.
import { refuse } from '../base/refusal.ts';

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
 * RFC 9110 §7.2, RFC 3986 §3.2.2, §3.2.3: a name or an address, and an optional port. In Node 20 and 22 URL
 * takes milliseconds for longer names.
 */
const HOST = /^(?:[a-z0-9._~-]{1,255}|\[[0-9a-f:.]+\])(?::\d{0,5})?$/i;

/** URL checks the port and the IPv6 address. */
export const isHost = (text: string) => HOST.test(text) && URL.canParse(`http://${text}`);

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
