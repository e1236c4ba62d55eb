// The one decision: lets a request in or turns it away, for service, gate and policy alike: credentials →
// token → sender constraint → access. Trusts the two checks that it is given. Promises: a record without a
// `reason` meets every demand; what a check throws is a bug in the record. Does not match routes.
import { andThen, attempt, type Clock, type MaybePromise } from '../verify/base/clock.ts';
import { Refused } from '../verify/base/refusal.ts';
import { foundOf, type Caller, type SenderCheck } from '../verify/caller.ts';
import { parseCredentials, type DpopMode } from '../verify/credentials.ts';
import type { RequestFacts } from '../verify/request/facts.ts';
import { verifiedOf, type TokenVerifier } from '../verify/token/verify.ts';
import { turnAway, type MatchedRoute, type RequestRecord } from './record.ts';
import { checkAccess, type Access } from './rules/access.ts';

/** May this request meet all demands? */
export interface Asked extends RequestRecord {
  readonly facts: RequestFacts;
  readonly route?: MatchedRoute | undefined;
  readonly demands: readonly Access<unknown>[];
  /** Whether something would serve it: nobody logs in again for a path without a route. */
  readonly isServed: boolean;
}

export type Decide = (asked: Asked) => MaybePromise<RequestRecord>;

export interface DecideOptions {
  readonly dpopMode: DpopMode;
  readonly clock: Clock;
  readonly verifyToken: TokenVerifier;
  readonly checkSender: SenderCheck;
}

export function createDecide({ dpopMode, clock, verifyToken, checkSender }: DecideOptions): Decide {
  function authenticate(facts: RequestFacts): MaybePromise<Caller | Refused | undefined> {
    const credentials = parseCredentials(facts.rawHeaders, dpopMode);
    if (credentials === undefined || credentials instanceof Refused) return credentials;

    return andThen(verifyToken(credentials.token), (token) => {
      if (token instanceof Refused) return token;

      const checked = checkSender(token, credentials, facts, clock.now());
      return andThen(checked, (caller) =>
        caller instanceof Refused ? caller.with(verifiedOf(token).found) : caller,
      );
    });
  }

  return function decide(asked) {
    if (asked.demands.every(isOpen)) return asked;

    return attempt(
      () =>
        andThen(authenticate(asked.facts), (caller) =>
          caller instanceof Refused ? turnAway(asked, caller) : decideAccess(asked, caller),
        ),
      (error) => turnAway(asked, error),
    );
  };
}

const isOpen = ({ credentials }: Access<unknown>) => credentials === 'ignored';

/** The second half, for a caller who is known. */
export function decideAccess(asked: Omit<Asked, 'facts'>, caller: Caller | undefined): RequestRecord {
  const record = caller === undefined ? asked : { ...asked, ...foundOf(caller), caller };
  try {
    const refused = checkAccess(asked.demands, caller, asked.isServed);
    return refused === undefined ? record : turnAway(record, refused);
  } catch (error) {
    return turnAway(record, error);
  }
}
