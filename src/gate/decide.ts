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

    const admit = (caller: Caller | Refused | undefined) => {
      if (caller instanceof Refused) return caller;
      if (caller !== undefined) record = extendRecord(asked, foundOf(caller));
      return checkAccess(demands, caller, isServed, asked, surroundings);
    };

    const finish = (refused?: Refused) => (refused ? turnAway(record, refused) : record);

    const decideNow = () => andThen(andThen(authenticate(asked), admit), finish);
    return attempt(decideNow, (error) => turnAway(record, error));
  };
}

const isOpen = ({ credentials }: DecidedAccess<unknown>) => credentials === 'ignored';
