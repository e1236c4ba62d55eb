// The one record of a request, and the one decision: lets a request in or turns it away, for service, gate
// and policy alike: credentials → token → sender constraint → access. Each stage returns the record with what
// it learnt; replies, log and metrics read it. Trusts the two checks that it is given. Promises: a record
// without a `reason` meets every demand; what a check throws is a bug in the record. Does not match routes.
import { andThen, attempt, type MaybePromise } from '../verify/base/clock.ts';
import { Refused, type Refusal } from '../verify/base/refusal.ts';
import { foundOf, type Caller, type SenderCheck } from '../verify/caller.ts';
import {
  parseCredentials,
  type RawRequest,
  type RequestFacts,
  type DpopMode,
} from '../verify/request/facts.ts';
import { verifiedOf, type TokenVerifier } from '../verify/token/verify.ts';
import type { Fields, RequestReason } from '../verify/base/events.ts';
import { checkAccess, type DecidedAccess, type Demands } from './rules/access.ts';
import type { Question, Surroundings } from './rules/further.ts';
import type { Learnt, Reply } from './replies/reply.ts';

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

export interface RequestRecord extends Learnt {
  readonly facts?: RequestFacts | undefined;
  readonly route?: MatchedRoute | undefined;
  readonly demands?: Demands | undefined;
  readonly caller?: Caller | undefined;
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

/** May this request meet all demands? */
export interface Asked extends RequestRecord, Question {
  readonly facts: RequestFacts;
  readonly demands: Demands;
  /** Whether something would serve it: a path without a route never asks for a login. */
  readonly isServed: boolean;
  /** Who asks, if that is decided already. */
  readonly known?: { readonly caller: Caller | undefined };
}

export type Decide = (asked: Asked) => MaybePromise<RequestRecord>;

export interface DecideOptions {
  readonly dpopMode: DpopMode;
  readonly surroundings: Surroundings;
  readonly verifyToken: TokenVerifier;
  readonly checkSender: SenderCheck;
}

export function createDecide({ dpopMode, surroundings, verifyToken, checkSender }: DecideOptions): Decide {
  function authenticate({ facts, known }: Asked): MaybePromise<Caller | Refused | undefined> {
    if (known) return known.caller;

    const credentials = parseCredentials(facts.rawHeaders, dpopMode);
    if (credentials === undefined || credentials instanceof Refused) return credentials;

    return andThen(verifyToken(credentials.token), function identify(token) {
      if (token instanceof Refused) return token;

      const checked = checkSender(token, credentials, facts, surroundings.clock.now());
      return andThen(checked, function withFound(caller) {
        return caller instanceof Refused ? caller.with(verifiedOf(token).found) : caller;
      });
    });
  }

  return function decide(asked) {
    const { demands, isServed } = asked;
    if (demands.every(isOpen)) return asked;

    let record: RequestRecord = asked;

    const finish = (refused?: Refused) => (refused ? turnAway(record, refused) : record);

    const admit = (caller: Caller | Refused | undefined) => {
      if (caller instanceof Refused) return finish(caller);
      if (caller !== undefined) record = extendRecord(asked, foundOf(caller));
      return andThen(checkAccess(demands, caller, isServed, asked, surroundings), finish);
    };

    const decideNow = () => andThen(authenticate(asked), admit);
    return attempt(decideNow, (error) => turnAway(record, error));
  };
}

const isOpen = ({ credentials }: DecidedAccess<unknown>) => credentials === 'ignored';
