// Log lines and counts from the record of each request, and a summary of refusals every minute. At `debug`,
// also what a refused token or proof was compared with: what options, routes and keys say, and of the request
// only its bounded host and path. Trusts its callers to call it once per request. Does not limit what lines
// may hold: verify/base/events.ts does.
import {
  printable,
  printableSetting,
  type Fields,
  type Log,
  type RequestReason,
  type Surroundings,
} from '../verify/base/events.ts';
import { requestUri, type RawRequest, type UriOptions } from '../verify/request/facts.ts';
import type { Issuer } from '../verify/token/verify.ts';
import type { Arrival, RequestRecord } from './decide.ts';
import { traceparentOf } from './tell.ts';

export type Expect = (record: RequestRecord) => Fields;

export function createExpect(issuers: readonly Issuer[], options: UriOptions): Expect {
  return function expect(record) {
    const { reason } = record;
    const named = issuers.find(({ name }) => name === record.issuerName);
    if (reason === 'key-unknown') return { knownKeys: named?.keys.usable() };
    if (reason === 'audience-mismatch') return { expectedAudience: named?.audience.map(printableSetting) };
    if (reason === 'proof-htu') return { expectedHtu: expectedUri(record, options) };
    if (reason !== 'issuer-mismatch') return {};

    // Of several issuers, `iss` names none.
    const compared = named === undefined ? issuers : [named];
    return { expectedIssuer: compared.map(({ issuer }) => printableSetting(issuer)) };
  };
}

/** With the route's pattern in place of a path, which may hold data. */
function expectedUri({ facts, route }: RequestRecord, options: UriOptions) {
  const uri = facts && requestUri(facts, options);
  if (typeof uri !== 'string') return undefined;

  const { length } = facts?.path ?? '';
  const path = route?.pattern ?? printable(uri.slice(uri.length - length));
  return printableSetting((options.publicUrl ?? printable(uri.slice(0, -length))) + path);
}

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
interface ObserverOptions extends Pick<Surroundings, 'clock' | 'count'> {
  readonly log: Log | undefined;
  readonly isAccessLogged: boolean;
  readonly meter: Meter | undefined;
  /** Without it, single refusals are not logged. */
  readonly expect: Expect | undefined;
}

/** Counts and logs refusals; with an access log or a meter, every request. */
export class Observer {
  readonly #options;
  readonly #counts = new Map<string, number>();
  #period: { readonly since: number; readonly cancel: () => void } | undefined;
  /** Whether requests that are not refused are observed too. */
  readonly isWatching: boolean;

  constructor(options: ObserverOptions) {
    this.#options = options;
    this.isWatching = options.isAccessLogged || options.meter !== undefined;
  }

  /** Returns the time, or 0 when it is not needed. */
  startTiming() {
    const { clock, meter } = this.#options;
    meter?.requestBegan();
    return this.isWatching ? clock.monotonic() : 0;
  }

  /** `status` is `null` when the client got no response. */
  observe({ request, arrivedAtMillis }: Arrival, record: RequestRecord, status: number | null) {
    const { clock, log, meter, isAccessLogged } = this.#options;
    const { reason, route } = record;
    const millis = this.isWatching ? clock.monotonic() - arrivedAtMillis : undefined;
    meter?.requestEnded(methodOf(request, record), route?.pattern, status, (millis ?? 0) / 1000);

    const isProbe = isOfProbe(request, record);
    if (reason !== undefined && !isProbe) this.#count(reason);

    if (log === undefined || !this.#isLogged(reason, isProbe)) return;

    const fields = logFieldsOf(request, record, status, millis);
    if (isAccessLogged) log('request', fields);
    this.#logRefusal(log, record, fields);
  }

  /** Logs the summary of the period so far. */
  summarize() {
    if (this.#period === undefined) return;

    const { clock, log } = this.#options;
    const seconds = Math.round((clock.monotonic() - this.#period.since) / 1000);
    log?.('requests refused', { seconds, ...Object.fromEntries(this.#counts) });

    this.#period.cancel();
    this.#period = undefined;
    this.#counts.clear();
  }

  #count(reason: RequestReason) {
    // Not refused, although there is an error to report.
    if (reason === 'bug' || reason === 'handler') return;

    const { clock, log, count } = this.#options;
    count?.('refusal', reason);
    if (log === undefined) return;

    this.#period ??= {
      since: clock.monotonic(),
      cancel: clock.after(SUMMARY_MILLIS, () => this.summarize()),
    };
    for (const name of ['total', reason]) {
      this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
    }
  }

  /** For speed: no fields are gathered for a line that is not written. */
  #isLogged(reason: RequestReason | undefined, isProbe: boolean) {
    const { isAccessLogged, expect } = this.#options;
    if (reason === undefined) return isAccessLogged && !isProbe;
    return isAccessLogged || expect !== undefined || reason === 'bug';
  }

  #logRefusal(log: Log, record: RequestRecord, fields: Fields) {
    const { expect } = this.#options;
    const { reason, route, bug, thrown } = record;
    if (reason === 'bug') {
      const method = route ? printable(route.method) : fields.method;
      log('request failed', { ...fields, method, ...bug }, thrown?.error);
    } else if (reason !== undefined && expect !== undefined) {
      log('request refused', { ...fields, ...expect(record) });
    }
  }
}

/** What a responder needs of an observer. */
export type Watcher = Pick<Observer, 'isWatching' | 'startTiming' | 'observe'>;

/** RFC 9110 §9.1, RFC 5789 */
const METHODS = 'GET HEAD POST PUT PATCH DELETE OPTIONS TRACE CONNECT'.split(' ').map(printable);

/** Probes do not count as refused. Successful ones have no line in the access log. */
const isOfProbe = ({ url = '' }: RawRequest, { facts, route, reason }: RequestRecord) =>
  facts?.uri === undefined &&
  !NO_REQUEST.includes(reason) &&
  /^\/(?:healthz|readyz)(?:\?|$)/.test(route?.pattern ?? url);

const NO_REQUEST: unknown[] = ['malformed-http', 'header_fields_too_large', 'request_timeout'];

/** `undefined` for `authorize`, and if the bytes were not a request, even if Node parsed a method. */
function methodOf(request: RawRequest, { facts, reason }: RequestRecord) {
  const { method } = facts ?? request;
  if (method === '' || NO_REQUEST.includes(reason)) return undefined;

  return METHODS.find((one) => one === method) ?? printable('_OTHER');
}

/** One literal: spreading would double the cost. */
function logFieldsOf(
  request: RawRequest,
  record: RequestRecord,
  status: number | null,
  millis: number | undefined,
) {
  const { route, reason, issuerName, kid } = record;
  const method = methodOf(request, record);
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
