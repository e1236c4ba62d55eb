// Tells a hook of each request, and finds the trace of a request (W3C Trace Context), which no check reads.
// Promises: a hook delays and changes no response; if it fails, the log says so, at most once a minute.
import { isIP } from 'node:net';
import { describeBug } from '../verify/base/events.ts';
import { lastHop, fieldValues } from '../verify/request/facts.ts';
import type { ClientAddressOf, CreateTell } from './events.ts';

/** W3C Trace Context §3.2.2, §3.2.4: no id is zero. Versions after 00 may be longer. */
const TRACEPARENT =
  /^(?!ff|00.{54})[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?$/;

/** If there is exactly one and it is well-formed. */
export function traceparentOf(rawHeaders: readonly string[]): string | undefined {
  const [value = '', ...others] = fieldValues(rawHeaders, 'traceparent');
  return others.length === 0 && TRACEPARENT.test(value) ? value : undefined;
}

const QUIET_MILLIS = 60_000;

export const createTell: CreateTell = (hook, { trustProxy }, clock, log) => {
  let quietUntilMillis = 0;
  if (hook === undefined) return undefined;

  return async function tell(request, { reason = null, caller = null }, more) {
    try {
      const { method = null, url = '', originalUrl = url, rawHeaders } = request;

      // The response goes first.
      await undefined;
      await hook({
        method,
        path: /^\/[^?]*/.exec(originalUrl)?.[0] ?? null,
        reason,
        caller,
        clientAddress: clientAddressOf(request, trustProxy) ?? null,
        traceparent: traceparentOf(rawHeaders) ?? null,
        ...more,
      });
    } catch (error) {
      if (clock.monotonic() < quietUntilMillis) return;

      quietUntilMillis = clock.monotonic() + QUIET_MILLIS;
      log('hook failed', describeBug(error), error);
    }
  };
};

/** RFC 4291 §2.5.5.2: a socket for IPv6 and IPv4 shows an IPv4 address as a mapped one. */
export const clientAddressOf: ClientAddressOf = ({ rawHeaders, socket }, trustProxy) => {
  const forwarded = trustProxy ? lastHop(rawHeaders, 'x-forwarded-for') : '';
  return isIP(forwarded) ? forwarded : Object(socket).remoteAddress?.replace(/^::ffff:(?=.*\.)/, '');
};
