// The order of the checks on an access token (docs/tokens.md). Until the signature is checked it trusts
// nothing but `kid`, which only looks a key up, and `iss`, which only says among whose keys: no address is
// made from it, no log line holds it. Promises: a VerifiedToken has passed every check at the moment it is
// given out, remembered or not. Does not check guards or the binding to a key: gate/guards.ts and sender/
// do.
import { hash } from 'node:crypto';
import { andThen, type Clock, type MaybePromise } from '../base/clock.ts';
import type { JsonObject } from '../base/encoding.ts';
import type { Count } from '../base/events.ts';
import { Cache } from '../base/cache.ts';
import { refuse, Refused } from '../base/refusal.ts';
import { sealing, type Sealed } from '../base/sealed.ts';
import {
  ALGORITHM_NAMES,
  factsOf,
  isOneOf,
  type Algorithm,
  type KeyFacts,
  type VerificationKey,
} from '../keys/jwk.ts';
import type { KeySet } from '../keys/key-set.ts';
import { claimsFlaw, timesFlaw, type TokenOptions } from './claims.ts';
import { mediaType, parseCompact } from './compact.ts';
import { payloadOf, verifySignature } from './signature.ts';

/** An issuer that is trusted: what its tokens must say, how it names claims, and its keys. */
export interface Issuer extends TokenOptions {
  /** As the settings call it. */
  readonly name: string;
  /** Of its access tokens. */
  readonly algorithms: readonly Algorithm[];
  readonly claimNamespace: string;
  readonly scopeClaim: string;
  /** RFC 8725 §3.8: they verify this issuer's tokens, and nobody else's. */
  readonly keys: KeySet;
}

interface Verified {
  /** As the provider wrote them. */
  readonly claims: JsonObject;
  /** As the token names its key. */
  readonly kid: string | undefined;
  /** Whose key signed it, and whose demands it meets. */
  readonly issuer: Issuer;
  /** As it was then. */
  readonly key: VerificationKey;
}

/** An access token that passed every check of this file. Only a `TokenVerifier` makes one. */
export type VerifiedToken = Sealed<Verified, 'VerifiedToken'>;

const { seal, unseal } = sealing<Verified, 'VerifiedToken'>();

/** What was verified. Throws a `TypeError` for look-alikes. */
export const verifiedOf = unseal;

/** What `createTokenVerifier` gives: the only maker of a VerifiedToken. */
export type TokenVerifier = ReturnType<typeof createTokenVerifier>;

/**
 * A verifier for these issuers that remembers up to `cacheEntries` verified tokens, by their SHA-256. It
 * verifies the text of a token at once while its key is held, else as soon as keys were fetched. What it
 * gives instead of a refused token says why; found after the key it tells its `kid` and its issuer.
 */
export function createTokenVerifier(
  issuers: readonly Issuer[],
  clock: Clock,
  cacheEntries: number,
  count?: Count,
) {
  const cache = new Cache<VerifiedToken>(cacheEntries);

  /** Remembers the token by its digest. */
  function verify(token: string, digest: string): MaybePromise<VerifiedToken | Refused> {
    const jws = parseCompact(token);
    if (typeof jws === 'string') return refuse(jws);

    // The one bend in the way of a token: what it claims chooses among the issuers, by equality of text, and
    // does nothing else; it is checked in its turn, which is all that the only issuer has it for.
    const issuer = issuers.find((one) => one.issuer === jws.payload.iss || issuers.length === 1);
    const header = parseTokenHeader(jws.header, issuer?.algorithms ?? ALGORITHM_NAMES);
    if (header instanceof Refused) return header;
    if (issuer === undefined) return refuse('issuer-mismatch');

    const { kid, alg } = header;
    return andThen(issuer.keys.find(kid), (key) => {
      if (key instanceof Refused) return key;

      const facts = factsOf(key);
      const findings = { kid: facts.kid, issuerName: issuer.name };
      // RFC 8725 §3.1: no header chooses how a key is used.
      if (facts.algorithm !== alg) return refuse('algorithm-refused').with(findings);

      const signed = verifySignature(jws, key);
      if (signed === undefined) return refuse('signature-mismatch').with(findings);

      const flaw = claimsFlaw(signed, jws.header, issuer, clock.now() / 1000);
      if (flaw !== undefined) return refuse(flaw).with(findings);

      count?.('gatehouse_tokens_total{result="verified"}');
      const claims = deepFreeze(payloadOf(signed));
      const verified = seal({ claims, kid, issuer, key });
      cache.offer(digest, verified);
      return verified;
    });
  }

  return (token: string): MaybePromise<VerifiedToken | Refused> => {
    const digest = hash('sha256', token, 'base64url');
    const remembered = cache.get(digest);
    if (remembered === undefined) return verify(token, digest);

    const { claims, kid, issuer, key } = unseal(remembered);
    return andThen(issuer.keys.find(kid), (current) => {
      if (current instanceof Refused) return current;

      // Checks again all that time can change: the key's place in the set, `exp` and `nbf`.
      const isSameKey = isSame(factsOf(current), factsOf(key));
      if (isSameKey && timesFlaw(claims, issuer, clock.now() / 1000) === undefined) {
        count?.('gatehouse_tokens_total{result="remembered"}');
        return remembered;
      }

      return verify(token, digest);
    });
  };
}

/**
 * Claims are shared by every request that brings the same token: no handler may change them for the next.
 */
function deepFreeze(claims: JsonObject) {
  // A list that grows while it is gone through: claims may be nested deeper than the stack.
  const all: unknown[] = [claims];
  for (const value of all) {
    if (typeof value !== 'object' || value === null) continue;

    Object.freeze(value);
    for (const member of Object.values(value)) all.push(member);
  }
  return claims;
}

/** A key that is published for another algorithm is another key. */
const isSame = (one: KeyFacts, other: KeyFacts) =>
  one.thumbprint === other.thumbprint && one.algorithm === other.algorithm;

/**
 * The `kid` and `alg` of a header that is checked before any key is looked for, or why the header is refused. Members
 * that carry keys are never read.
 */
function parseTokenHeader({ alg, crit, b64, typ, kid }: JsonObject, algorithms: readonly Algorithm[]) {
  // RFC 7515 §4.1.1, RFC 8725 §2.1, §3.1, §3.2: the operator names the algorithms, the header must be one of them.
  if (!isOneOf(algorithms, alg)) return refuse('algorithm-refused');

  // RFC 7515 §4.1.11, RFC 7797 §6: no extension is understood here. Stricter: `b64` without `crit` neither.
  if (crit !== undefined || b64 !== undefined) return refuse('critical-header');

  // RFC 8725 §3.11, RFC 9068 §2.1
  const type = mediaType(typ);
  if (typ !== undefined && type !== 'jwt' && type !== 'at+jwt') return refuse('type-refused');

  // RFC 7515 §4.1.4, RFC 8725 §3.10
  return kid === undefined || typeof kid === 'string' ? { kid, alg } : refuse('key-id-malformed');
}
