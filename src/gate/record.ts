// The one record of a request. Each stage returns it with what it learnt; replies, log and metrics read it.
import type { Fields, RequestReason } from '../verify/base/events.ts';
import { Refused, type Found, type Refusal } from '../verify/base/refusal.ts';
import type { Caller } from '../verify/caller.ts';
import type { RawRequest, RequestFacts } from '../verify/request/facts.ts';
import type { Reply } from './replies/reply.ts';
import type { DecidedAccess } from './rules/access.ts';

/** A request, and when it began to be served. */
export interface Arrival {
  readonly request: RawRequest;
  /** Monotonic milliseconds; 0 when nobody reads it. */
  readonly arrivedAtMillis: number;
}

export interface MatchedRoute {
  readonly method: string;
  readonly pattern: string;
}

export interface RequestRecord extends Found {
  readonly facts?: RequestFacts;
  readonly route?: MatchedRoute | undefined;
  /** The accesses in force: those of the rules, then the route's. */
  readonly demands?: readonly DecidedAccess<unknown>[];
  readonly caller?: Caller | undefined;
  /** Replaces `CrossOrigin.forReading`. */
  readonly crossOrigin?: readonly string[];
  /** Why the request was turned away. */
  readonly reason?: RequestReason;
  readonly refusal?: Refusal;
  /** What was thrown, for the log, if it is a bug. */
  readonly bug?: Fields;
  /** Without one, once all is known, the client has gone. */
  readonly reply?: Reply;
}

/** A `Refused` turns the request away; anything else that was thrown is a bug. */
export function turnAway(record: RequestRecord, thrown: unknown): RequestRecord {
  if (!Refused.is(thrown)) return { ...record, reason: 'bug', error: thrown };

  const { refusal, found } = thrown;
  return { ...record, ...found, reason: refusal.reason, refusal };
}

/** `undefined`: the request needs no reply before access is checked. */
export type Early = (facts: RequestFacts) => RequestRecord | undefined;
