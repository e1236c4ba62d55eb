// What is told of requests, from the one record that each leaves: lines in the log, counts, and a summary of
// refusals once a minute, so that an operator at the default level sees that callers are turned away, and
// why. Trusts that it is called once a request. Does not decide what a line may hold: verify/base/events.ts
// does.
import type { Clock } from '../verify/base/clock.ts';
import {
  describeBug,
  printable,
  printableSetting,
  type Log,
  type Printable,
  type RequestReason,
} from '../verify/base/events.ts';
import { traceparentOf } from '../verify/request/fields.ts';
import type { RequestRecord } from './record.ts';

const SUMMARY_MILLIS = 60_000;

/** What counts requests. */
export interface Meter {
  /** Adds to a sample; 1 without an amount. */
  add(name: string, amount?: number): void;
  /** Takes the duration of a request, in seconds, by pattern, method and status. */
  durations(pattern?: string): (method: string) => (status: number | null) => (seconds: number) => void;
}

/** What a process gives a service or a gate. */
export interface Dependencies {
  readonly clock: Clock;
  readonly log: Log;
  /** Absent where nothing is counted. */
  readonly metrics?: Meter | undefined;
}

/** What `createObserver` gives. */
export type Observer = ReturnType<typeof createObserver>;

/** With an `accessLog` every request leaves a line, with `metrics` it is counted. */
export function createObserver({ log, clock, metrics }: Dependencies, accessLog: boolean) {
  /** Whether requests that are served are told of too. */
  const isWatching = accessLog || metrics !== undefined;
  const counts = new Map<string, number>();
  let period: { since: number; cancel: () => void } | undefined;

  /** Writes the last summary, if there is something to say. */
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
    metrics?.add(`gatehouse_refusals_total{reason="${reason}"}`);
  }

  /** Once a request; no status when nobody was left to be answered. */
  function observe(record: RequestRecord, status: number | null) {
    const { route, reason, arrivedAt } = record;
    const method = methodOf(record);
    const millis = clock.monotonic() - arrivedAt;
    metrics?.add('http_server_active_requests', -1);
    const measure = method && metrics?.durations(route?.pattern)(method)(status);
    measure?.(millis / 1000);

    if (reason === undefined && (!accessLog || isOfProbe(record))) return;

    tell(record, logFieldsOf(record, method, status, isWatching ? millis : undefined));
  }

  function tell(record: RequestRecord, facts: ReturnType<typeof logFieldsOf>) {
    const { route, reason, failure } = record;
    if (accessLog) log('request', facts);
    if (reason === undefined) return;

    if (reason === 'bug') {
      return log('request failed', {
        ...facts,
        method: route && printable(route.method),
        ...describeBug(failure),
      });
    }

    log('request refused', facts);
    if (reason !== 'handler' && !isOfProbe(record)) count(reason);
  }

  /** The time of an arrival; 0 while nobody asks for it. */
  function noteArrival() {
    metrics?.add('http_server_active_requests');
    return isWatching ? clock.monotonic() : 0;
  }

  return { isWatching, noteArrival, observe, summarize };
}

/** RFC 9110 §9.1, RFC 5789 */
const METHODS = 'GET HEAD POST PUT PATCH DELETE OPTIONS TRACE CONNECT'.split(' ').map(printable);

/** Also with a method that has no route: what a probe is told is no refusal. */
const isOfProbe = ({ route, request }: RequestRecord) =>
  /^\/(?:healthz|readyz)(?:\?|$)/.test(route?.pattern ?? request.url ?? '');

const NO_REQUEST: unknown[] = ['malformed-http', 'header_fields_too_large', 'request_timeout'];

/** A word of a closed list; nothing for what is no request, though Node may take it for one. */
function methodOf({ request, reason }: RequestRecord) {
  if (NO_REQUEST.includes(reason)) return undefined;
  return METHODS.find((method) => method === request.method) ?? printable('_OTHER');
}

/**
 * What lines may say of a request. One literal: spread into one another objects cost as much as the rest.
 */
function logFieldsOf(
  { request, route, reason, issuerName, kid }: RequestRecord,
  method: Printable | undefined,
  status: number | null,
  millis: number | undefined,
) {
  const traceparent = traceparentOf(request.rawHeaders);
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
