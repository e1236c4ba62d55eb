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
  /** Monotonic milliseconds; 0 when not needed. */
  readonly arrivedAtMillis: number;
}

export interface MatchedRoute {
  readonly method: string;
  readonly pattern: string;
}

export interface RequestRecord extends Found {
  readonly facts?: RequestFacts | undefined;
  readonly route?: MatchedRoute | undefined;
  /** The accesses in force: those of the rules, then the route's. */
  readonly demands?: readonly DecidedAccess<unknown>[] | undefined;
  readonly caller?: Caller | undefined;
  /** Replaces `CrossOrigin.forReading`. */
  readonly crossOrigin?: readonly string[] | undefined;
  /** Why the request was turned away. */
  readonly reason?: RequestReason | undefined;
  readonly refusal?: Refusal | undefined;
  /** What was thrown, for the log, if it is a bug. */
  readonly bug?: Fields | undefined;
  /** Without one, once all is known, the client has gone. */
  readonly reply?: Reply | undefined;
}

/**
 * The record, and what a stage has learnt since. An earlier reply does not count any more. Members in one
 * literal: for each spread of a record, V8 would make a new map, which doubles the cost of a request.
 */
export function extendRecord(record: RequestRecord, more: RequestRecord): RequestRecord {
  return {
    facts: more.facts ?? record.facts,
    route: more.route ?? record.route,
    demands: more.demands ?? record.demands,
    caller: more.caller ?? record.caller,
    crossOrigin: more.crossOrigin ?? record.crossOrigin,

    kid: more.kid ?? record.kid,
    issuerName: more.issuerName ?? record.issuerName,
    freshNonce: more.freshNonce ?? record.freshNonce,
    isGone: more.isGone ?? record.isGone,
    thrown: more.thrown ?? record.thrown,

    reason: more.reason ?? record.reason,
    // A bug after a refusal is no refusal.
    refusal: more.reason === undefined ? record.refusal : more.refusal,
    bug: more.bug ?? record.bug,
    reply: more.reply,
  } satisfies Record<keyof RequestRecord, unknown>;
}

/** A `Refused` turns the request away; anything else that was thrown is a bug. */
export function turnAway(record: RequestRecord, thrown: unknown): RequestRecord {
  if (!Refused.is(thrown)) {
    return extendRecord(record, { reason: 'bug', thrown: { error: thrown } });
  }

  const { refusal, found } = thrown;
  return extendRecord(extendRecord(record, found), { reason: refusal.reason, refusal });
}

/** Like `turnAway`, when nothing is known of the request yet. */
export const turnedAwayBy = (thrown: unknown) => turnAway({}, thrown);

/** `undefined`: the request needs no reply before access is checked. */
export type Early = (facts: RequestFacts) => RequestRecord | undefined;
