// What hooks are told: of errors, verdicts and responses. Types alone: no program loads this file.
import type { Clock } from '../verify/base/clock.ts';
import type { Log, RequestReason } from '../verify/base/events.ts';
import type { Caller } from '../verify/caller.ts';
import type { RawRequest } from '../verify/request/facts.ts';
import type { RequestRecord } from './decide.ts';

/** A missing value is `null`. No value is a token or a proof. */
interface RequestEvent {
  /** The method as sent. In forward-auth, the method of the request that the proxy asks about. */
  readonly method: string | null;
  /** The path as sent, without the query. In forward-auth, as for `method`. */
  readonly path: string | null;
  /** Why the request was refused, as in the log. */
  readonly reason: RequestReason | null;
  readonly caller: Caller | null;
  /** The peer's address or, if a proxy is trusted, the last address in `X-Forwarded-For`. */
  readonly clientAddress: string | null;
  /** The request's `traceparent` header, if well-formed (W3C Trace Context §3.2). */
  readonly traceparent: string | null;
}

/** What `onVerdict` gets. */
export interface VerdictEvent extends RequestEvent {
  readonly admitted: boolean;
  /** The status of the refusal, or `null` if admitted. */
  readonly status: number | null;
}

/** What `onResponse` gets. */
export interface ResponseEvent extends RequestEvent {
  /** The pattern of the route, or `null` if none matches. */
  readonly route: string | null;
  /** `null` if no response was sent. */
  readonly status: number | null;
  /** From the request's arrival until its response was written or, if its client left, its handler ended. */
  readonly durationMillis: number;
}

/** Called shortly after each verdict. A failure is logged. */
export type OnVerdict = (event: VerdictEvent) => unknown;

/** Called shortly after each response, and for a client that has gone. A failure is logged. */
export type OnResponse = (event: ResponseEvent) => unknown;

/**
 * Called with what was thrown, for each error that becomes a 500, cuts off a response or makes a decision
 * fail, and with the method and route of the request. What it throws itself is ignored.
 */
export type OnError = (error: unknown, request: Pick<ResponseEvent, 'method' | 'route'>) => unknown;

/** Calls a hook soon. Never rejects. `more` is what the event has besides, or in place of it. */
export type Tell<More> = (request: RawRequest, record: RequestRecord, more: More) => Promise<void>;

/** What a verdict adds. */
export type Judged = Pick<VerdictEvent, 'admitted' | 'status'>;

/** The peer's address or, if a proxy is trusted, the last address in `X-Forwarded-For`. */
export type ClientAddressOf = (request: RawRequest, trustProxy: boolean) => string | undefined;

/** Without a hook, there is nothing to call. */
export type CreateTell = <More extends object>(
  hook: ((event: RequestEvent & More) => unknown) | undefined,
  options: { readonly trustProxy: boolean },
  clock: Clock,
  log: Log,
) => Tell<More> | undefined;
