// The one decision: lets a request in or turns it away, for service, gate and policy alike: credentials →
// token → sender constraint → access. Trusts the two checks that it is given. Promises: a record without a
// `reason` meets every demand; what a check throws is a bug in the record. Does not match routes.
import { andThen, attempt, type MaybePromise } from '../verify/base/clock.ts';
import { Refused } from '../verify/base/refusal.ts';
import { foundOf, type Caller, type SenderCheck } from '../verify/caller.ts';
import { parseCredentials, type DpopMode } from '../verify/credentials.ts';
import type { RequestFacts } from '../verify/request/facts.ts';
import { verifiedOf, type TokenVerifier } from '../verify/token/verify.ts';
import { extendRecord, turnAway, type MatchedRoute, type RequestRecord } from './record.ts';
import { checkAccess, type DecidedAccess } from './rules/access.ts';
import type { Question, Surroundings } from './rules/further.ts';

/** May this request meet all demands? */
export interface Asked extends RequestRecord, Question {
  readonly facts: RequestFacts;
  readonly route?: MatchedRoute | undefined;
  readonly demands: readonly DecidedAccess<unknown>[];
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
  function authenticate(facts: RequestFacts): MaybePromise<Caller | Refused | undefined> {
    const credentials = parseCredentials(facts.rawHeaders, dpopMode);
    if (credentials === undefined || credentials instanceof Refused) return credentials;

    return andThen(verifyToken(credentials.token), (token) => {
      if (token instanceof Refused) return token;

      const checked = checkSender(token, credentials, facts, surroundings.clock.now());
      return andThen(checked, (caller) =>
        caller instanceof Refused ? caller.with(verifiedOf(token).found) : caller,
      );
    });
  }

  /** The second half, for a caller who is known. */
  function decideAccess(asked: Asked, caller: Caller | undefined): MaybePromise<RequestRecord> {
    const record = caller === undefined ? asked : extendRecord(asked, foundOf(caller));
    const { demands, isServed } = asked;
    return attempt(
      () =>
        andThen(checkAccess(demands, caller, isServed, asked, surroundings), (refused) =>
          refused === undefined ? record : turnAway(record, refused),
        ),
      (error) => turnAway(record, error),
    );
  }

  return function decide(asked) {
    if (asked.demands.every(isOpen)) return asked;

    return attempt(
      () =>
        andThen(asked.known ? asked.known.caller : authenticate(asked.facts), (caller) =>
          caller instanceof Refused ? turnAway(asked, caller) : decideAccess(asked, caller),
        ),
      (error) => turnAway(asked, error),
    );
  };
}

const isOpen = ({ credentials }: DecidedAccess<unknown>) => credentials === 'ignored';
