// Who makes a request: facts → credentials → token → sender constraint → Caller. Trusts the two checks that
// it is given. Does not check whether the caller may pass: access.ts does.
import { andThen, type Clock, type MaybePromise } from '../verify/base/clock.ts';
import { Refused } from '../verify/base/refusal.ts';
import type { Caller, SenderCheck } from '../verify/caller.ts';
import { parseCredentials, type DpopMode } from '../verify/credentials.ts';
import { readHost } from '../verify/request/fields.ts';
import type { RequestFacts } from '../verify/request/uri.ts';
import { verifiedOf, type TokenVerifier } from '../verify/token/verify.ts';
import type { Early } from './early.ts';
import { targetPath } from '../verify/request/path.ts';
import type { Outcome, RawRequest } from './record.ts';

interface IdentificationOptions {
  readonly dpopMode: DpopMode;
  readonly clock: Clock;
  readonly verifyToken: TokenVerifier;
  readonly checkSender: SenderCheck;
  readonly early: readonly Early[];
}

export type Identification = ReturnType<typeof createIdentification>;

export function createIdentification({
  dpopMode,
  clock,
  verifyToken,
  checkSender,
  early: earlyReplies,
}: IdentificationOptions) {
  function readFacts(request: RawRequest): RequestFacts | Refused {
    const { method = '', url = '', originalUrl = url, rawHeaders, httpVersion } = request;
    const host = readHost(rawHeaders, httpVersion);
    if (host instanceof Refused) return host;

    const path = targetPath(originalUrl);
    return path instanceof Refused ? path : { method, host, path, rawHeaders };
  }

  function replyEarly(facts: RequestFacts): Outcome | undefined {
    for (const replyTo of earlyReplies) {
      const early = replyTo(facts);
      if (early !== undefined) return early;
    }
    return undefined;
  }

  function identify(facts: RequestFacts): MaybePromise<Caller | Refused | undefined> {
    const credentials = parseCredentials(facts.rawHeaders, dpopMode);
    if (credentials === undefined || credentials instanceof Refused) return credentials;

    return andThen(verifyToken(credentials.token), (token) => {
      if (token instanceof Refused) return token;

      const checked = checkSender(token, credentials, facts, clock.now());
      return andThen(checked, (caller) =>
        caller instanceof Refused ? caller.with(verifiedOf(token).findings) : caller,
      );
    });
  }

  return { readFacts, replyEarly, identify };
}
