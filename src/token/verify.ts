/*
 * The order of the checks on an access token (contract §5); the only maker of a verified token.
 * Trusts the key set for keys and nothing of the token's header but `kid`, which only looks a key up.
 * Promises: a VerifiedToken has passed every check at the moment it is given out, remembered or not.
 * Does not check guards or the binding to a key: guards.ts and sender/ do.
 */
import { hash } from 'node:crypto';
import type { JsonObject } from '../encoding.ts';
import type { VerificationKey } from '../keys/jwk.ts';
import type { KeySet } from '../keys/key-set.ts';
import { refuseToken } from '../refusal.ts';
import { checkClaims, checkTimes, type TokenRules } from './claims.ts';
import { mediaType, parseCompact, type UnverifiedJws } from './compact.ts';
import { Memory } from './memory.ts';
import { verifySignature } from './signature.ts';

class Verified {
  readonly #claims: JsonObject;
  readonly #kid: string | undefined;
  readonly #key: VerificationKey;

  constructor(claims: JsonObject, kid: string | undefined, key: VerificationKey) {
    this.#claims = claims;
    this.#kid = kid;
    this.#key = key;
  }

  static claimsOf(token: Verified): JsonObject {
    return token.#claims;
  }

  /** Checks again all that time can change, `exp`, `nbf` and the key's place in the set; throws as `find` does. */
  static isStillGood(token: Verified, keys: KeySet, rules: TokenRules, nowSeconds: number, waits: number): boolean {
    if (keys.find(token.#kid, waits) !== token.#key) return false;
    checkTimes(token.#claims, rules.clockToleranceSeconds, nowSeconds);
    return true;
  }
}
/** An access token that passed every check of contract §5. */
export type VerifiedToken = Verified;
export const { claimsOf } = Verified;
const { isStillGood } = Verified;

/**
 * Verifies a token at `nowMillis` (since the epoch); `waits` counts the fetches that this request has awaited.
 * Throws `Refused` with the first failed check, or `KeysPending` when keys must be fetched first.
 */
export type TokenVerifier = (token: string, nowMillis: number, waits: number) => VerifiedToken;

/** A verifier for one issuer and audience that remembers up to `cacheEntries` verified tokens, by their SHA-256. */
export function createTokenVerifier(rules: TokenRules, keys: KeySet, cacheEntries: number): TokenVerifier {
  const memory = new Memory<VerifiedToken>(cacheEntries);
  return (token, nowMillis, waits) => {
    const nowSeconds = nowMillis / 1000;
    const digest = cacheEntries === 0 ? '' : hash('sha256', token, 'base64url');
    const remembered = memory.take(digest);
    if (remembered !== undefined && isStillGood(remembered, keys, rules, nowSeconds, waits)) {
      memory.set(digest, remembered);
      return remembered;
    }
    const jws = parseToken(token);
    const kid = checkHeader(jws.header);
    const key = keys.find(kid, waits);
    const signed = verifySignature(jws, key);
    if (signed === undefined) throw refuseToken('signature-mismatch');
    const verified = new Verified(checkClaims(signed, jws.header, rules, nowSeconds), kid, key);
    memory.set(digest, verified);
    return verified;
  };
}

function parseToken(token: string): UnverifiedJws {
  const jws = parseCompact(token);
  if (jws === 'malformed') throw refuseToken('token-malformed');
  if (typeof jws === 'string') throw refuseToken(jws);
  return jws;
}

/** Checks the header before any key is looked for, and gives its `kid`. Members that carry keys are never read. */
function checkHeader({ alg, crit, b64, typ, kid }: JsonObject): string | undefined {
  // RFC 8725 §3.1: the verifier names the algorithm, the header must equal it.
  if (alg !== 'RS256') throw refuseToken('algorithm-refused');
  // RFC 7515 §4.1.11, RFC 7797 §6: no extension is understood here. Stricter: `b64` without `crit` neither.
  if (crit !== undefined || b64 !== undefined) throw refuseToken('critical-header');
  // RFC 8725 §3.11, RFC 9068 §2.1
  if (typ !== undefined && !(typeof typ === 'string' && ['jwt', 'at+jwt'].includes(mediaType(typ)))) {
    throw refuseToken('type-refused');
  }
  // RFC 7515 §4.1.4
  if (kid !== undefined && typeof kid !== 'string') throw refuseToken('key-id-malformed');
  return kid;
}
