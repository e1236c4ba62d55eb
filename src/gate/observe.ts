// Log lines and counts from the record of each request, and a summary of refusals every minute. Trusts its
// callers to call it once per request. Does not limit what lines may hold: verify/base/events.ts does.
import type { Clock } from '../verify/base/clock.ts';
import {
  printable,
  printableSetting,
  type Count,
  type Log,
  type Printable,
  type RequestReason,
} from '../verify/base/events.ts';
import { findingsOf } from '../verify/caller.ts';
import type { Expect } from './expect.ts';
import type { Arrival, RawRequest, Settled } from './record.ts';
import { traceparentOf } from './traceparent.ts';

const SUMMARY_MILLIS = 60_000;

interface Meter {
  readonly count: Count;
  requestBegan(): void;
  /** No `method` if the bytes were not a request. */
  requestEnded(
    method: string | undefined,
    pattern: string | undefined,
    status: number | null,
    seconds: number,
  ): void;
}

export interface Dependencies {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics?: Meter | undefined;
}

export type Observer = ReturnType<typeof createObserver>;

/** Without `expect`, refusals are logged without what this side expected. */
export function createObserver({ log, clock, metrics }: Dependencies, accessLog: boolean, expect?: Expect) {
  const isWatching = accessLog || metrics !== undefined;
  const counts = new Map<string, number>();
  let period: { since: number; cancel: () => void } | undefined;

  function summarize() {
    if (period === undefined) return;

    const seconds = Math.round((clock.monotonic() - period.since) / 1000);
    log('requests refused', { seconds, ...Object.fromEntries(counts) });

    period.cancel();
    period = undefined;
    counts.clear();
  }

  function count(reason: RequestReason) {
    period ??= { since: clock.monotonic(), cancel: clock.after(SUMMARY_MILLIS, summarize) };
    for (const name of ['total', reason]) {
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    metrics?.count('refusal', reason);
  }

  /** `status` is `null` when the client got no response. */
  function observe(arrival: Arrival, settled: Settled, status: number | null) {
    const { request, arrivedAtMillis } = arrival;
    const method = methodOf(request, settled);
    const millis = clock.monotonic() - arrivedAtMillis;
    metrics?.requestEnded(method, settled.known?.route?.pattern, status, millis / 1000);

    if (settled.reason === undefined && (!accessLog || isOfProbe(request, settled))) return;

    const fields = logFieldsOf(request, settled, method, status, isWatching ? millis : undefined);
    writeLines(request, settled, fields);
  }

  function writeLines(request: RawRequest, settled: Settled, fields: ReturnType<typeof logFieldsOf>) {
    const { known, reason, bug } = settled;
    if (accessLog) log('request', fields);
    if (reason === undefined) return;

    if (reason === 'bug') {
      return log('request failed', {
        ...fields,
        method: known?.route && printable(known.route.method),
        ...bug,
      });
    }

    log('request refused', expect === undefined ? fields : { ...fields, ...expect(settled) });
    if (reason !== 'handler' && !isOfProbe(request, settled)) count(reason);
  }

  /** Returns the time, or 0 when nobody reads it. */
  function noteArrival() {
    metrics?.requestBegan();
    return isWatching ? clock.monotonic() : 0;
  }

  return { isWatching, noteArrival, observe, summarize };
}

/** RFC 9110 §9.1, RFC 5789 */
const METHODS = 'GET HEAD POST PUT PATCH DELETE OPTIONS TRACE CONNECT'.split(' ').map(printable);

/** Probes do not count as refused. Successful ones have no line in the access log. */
const isOfProbe = ({ url = '' }: RawRequest, { known, reason }: Settled) =>
  known?.facts?.uri === undefined &&
  !NO_REQUEST.includes(reason) &&
  /^\/(?:healthz|readyz)(?:\?|$)/.test(known?.route?.pattern ?? url);

const NO_REQUEST: unknown[] = ['malformed-http', 'header_fields_too_large', 'request_timeout'];

/** `undefined` if the bytes were not a request, even if Node parsed a method. */
function methodOf(request: RawRequest, { known, reason }: Settled) {
  if (NO_REQUEST.includes(reason)) return undefined;

  const { method } = known?.facts ?? request;
  return METHODS.find((one) => one === method) ?? printable('_OTHER');
}

/** One literal: spreading would double the cost. */
function logFieldsOf(
  { rawHeaders }: RawRequest,
  { known: { route, caller } = {}, reason, findings }: Settled,
  method: Printable | undefined,
  status: number | null,
  millis: number | undefined,
) {
  const { issuerName, kid } = (caller ? findingsOf(caller) : findings) ?? {};
  const traceparent = traceparentOf(rawHeaders);
  const [, traceId, parentId] = traceparent?.split('-').map(printable) ?? [];

  return {
    method: method ?? null,
    route: method && route ? printableSetting(route.pattern) : null,
    status,
    durationMillis: millis && Math.round(millis * 1000) / 1000,
    reason,

    issuer: issuerName === undefined ? undefined : printable(issuerName),
    kid: kid === undefined ? undefined : printable(kid),
    traceId,
    parentId,
  };
}
