// Log lines and counts from the record of each request, and a summary of refusals every minute. Trusts its
// callers to call it once per request. Does not limit what lines may hold: verify/base/events.ts does.
import type { Clock } from '../verify/base/clock.ts';
import {
  printable,
  printableSetting,
  type Count,
  type Fields,
  type Log,
  type Printable,
  type RequestReason,
} from '../verify/base/events.ts';
import type { RawRequest } from '../verify/request/facts.ts';
import type { Expect } from './expect.ts';
import type { Arrival, RequestRecord } from './record.ts';
import { traceparentOf } from './traceparent.ts';

const SUMMARY_MILLIS = 60_000;

/** Counts requests. */
export interface Meter {
  requestBegan(): void;
  /** No `method` if the bytes were not a request. */
  requestEnded(
    method: string | undefined,
    pattern: string | undefined,
    status: number | null,
    seconds: number,
  ): void;
}

/** Without `log`, nothing is logged or summarized. */
export interface ObserverOptions {
  readonly clock: Clock;
  readonly log: Log | undefined;
  readonly isAccessLogged: boolean;
  readonly count: Count | undefined;
  readonly meter: Meter | undefined;
  /** Without it, refusals are logged without what this side expected. */
  readonly expect: Expect | undefined;
}

export interface Observer {
  /** Whether requests that are not refused are observed too. */
  readonly isWatching: boolean;
  /** Returns the time, or 0 when it is not needed. */
  readonly startTiming: () => number;
  /** `status` is `null` when the client got no response. */
  readonly observe: (arrival: Arrival, record: RequestRecord, status: number | null) => void;
  /** Logs the summary of the period so far. */
  readonly summarize: () => void;
}

export function createObserver(options: ObserverOptions): Observer {
  const { clock, log, isAccessLogged, meter } = options;
  const isWatching = isAccessLogged || meter !== undefined;
  const counts = new Map<string, number>();
  let period: { since: number; cancel: () => void } | undefined;

  function summarize() {
    if (period === undefined) return;

    const seconds = Math.round((clock.monotonic() - period.since) / 1000);
    log?.('requests refused', { seconds, ...Object.fromEntries(counts) });

    period.cancel();
    period = undefined;
    counts.clear();
  }

  function count(reason: RequestReason) {
    options.count?.('refusal', reason);
    if (log === undefined) return;

    period ??= { since: clock.monotonic(), cancel: clock.after(SUMMARY_MILLIS, summarize) };
    for (const name of ['total', reason]) {
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }

  function observe(arrival: Arrival, record: RequestRecord, status: number | null) {
    const { request, arrivedAtMillis } = arrival;
    const { reason, route } = record;
    const method = methodOf(request, record);
    const millis = clock.monotonic() - arrivedAtMillis;
    meter?.requestEnded(method, route?.pattern, status, millis / 1000);

    const isProbe = isOfProbe(request, record);
    const isCounted = reason !== undefined && reason !== 'bug' && reason !== 'handler';
    if (isCounted && !isProbe) count(reason);
    if (log === undefined || (reason === undefined && (!isAccessLogged || isProbe))) return;

    const fields = logFieldsOf(request, record, method, status, isWatching ? millis : undefined);
    if (isAccessLogged) log('request', fields);
    writeRefusal(log, record, fields, options.expect);
  }

  function startTiming() {
    meter?.requestBegan();
    return isWatching ? clock.monotonic() : 0;
  }

  return { isWatching, startTiming, observe, summarize };
}

function writeRefusal(log: Log, record: RequestRecord, fields: Fields, expect: Expect | undefined) {
  const { reason, route, bug, thrown } = record;
  if (reason === undefined) return;

  if (reason !== 'bug') {
    return log('request refused', expect === undefined ? fields : { ...fields, ...expect(record) });
  }

  const method = route && printable(route.method);
  log('request failed', { ...fields, method, ...bug }, thrown?.error);
}

/** RFC 9110 §9.1, RFC 5789 */
const METHODS = 'GET HEAD POST PUT PATCH DELETE OPTIONS TRACE CONNECT'.split(' ').map(printable);

/** Probes do not count as refused. Successful ones have no line in the access log. */
const isOfProbe = ({ url = '' }: RawRequest, { facts, route, reason }: RequestRecord) =>
  facts?.uri === undefined &&
  !NO_REQUEST.includes(reason) &&
  /^\/(?:healthz|readyz)(?:\?|$)/.test(route?.pattern ?? url);

const NO_REQUEST: unknown[] = ['malformed-http', 'header_fields_too_large', 'request_timeout'];

/** `undefined` if the bytes were not a request, even if Node parsed a method. */
function methodOf(request: RawRequest, { facts, reason }: RequestRecord) {
  if (NO_REQUEST.includes(reason)) return undefined;

  const { method } = facts ?? request;
  return METHODS.find((one) => one === method) ?? printable('_OTHER');
}

/** One literal: spreading would double the cost. */
function logFieldsOf(
  { rawHeaders }: RawRequest,
  { route, reason, issuerName, kid }: RequestRecord,
  method: Printable | undefined,
  status: number | null,
  millis: number | undefined,
) {
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
