// The order of the checks on an access token (contract §5). Trusts nothing of its header but `kid`, which only looks a key up.
// Promises: a VerifiedToken has passed every check at the moment it is given out, remembered or not.
// Does not check guards or the binding to a key: guards.ts and sender/ do.
import { hash } from 'node:crypto';
import type { JsonObject } from '../base/encoding.ts';
import { factsOf, type VerificationKey } from '../keys/jwk.ts';
import type { KeySet } from '../keys/key-set.ts';
import { Memory } from '../base/lru.ts';
import { refuseToken } from '../base/refusal.ts';
import { sealing, type Sealed } from '../base/sealed.ts';
import { checkClaims, checkTimes, type TokenRules } from './claims.ts';
import { mediaType, parseCompact } from './compact.ts';
import { verifySignature } from './signature.ts';

type Verified = Readonly<{ claims: JsonObject; kid: string | undefined; key: VerificationKey }>;
/** An access token that passed every check of contract §5. Only a `TokenVerifier` makes one. */
export type VerifiedToken = Sealed<Verified, 'VerifiedToken'>;
const { seal, open } = sealing<Verified, 'VerifiedToken'>();
export const claimsOf = (token: VerifiedToken): JsonObject => open(token).claims;
/** `nowMillis` is since the epoch, `waits` how often this request has awaited a fetch; `noteKey` learns of the key. Throws `Refused` or `KeysPending`. */
export type TokenVerifier = (
  token: string,
  nowMillis: number,
  waits: number,
  noteKey?: (kid: string | undefined) => void,
) => VerifiedToken;
/** A verifier for one issuer and audience that remembers up to `cacheEntries` verified tokens, by their SHA-256. */
export function createTokenVerifier(rules: TokenRules, keys: KeySet, cacheEntries: number): TokenVerifier {
  const memory = new Memory<VerifiedToken>(cacheEntries);
  return (token, nowMillis, waits, noteKey) => {
    const nowSeconds = nowMillis / 1000;
    const find = (kid: string | undefined) => {
      const key = keys.find(kid, waits);
      noteKey?.(factsOf(key).kid);
      return key;
    };
    const digest = cacheEntries === 0 ? '' : hash('sha256', token, 'base64url');
    const remembered = memory.get(digest);
    let verified: VerifiedToken | undefined;
    try {
      const isGood = remembered !== undefined && isStillGood(open(remembered), find, rules, nowSeconds);
      verified = isGood ? remembered : seal(verify(token, find, rules, nowSeconds));
    } finally {
      if (verified === undefined) memory.delete(digest);
    }
    if (verified !== remembered) memory.set(digest, verified);
    return verified;
  };
}
type Find = (kid: string | undefined) => VerificationKey;
/** Checks again all that time can change: the key's place in the set, `exp` and `nbf`. Throws as `verify` does. */
function isStillGood(
  { claims, kid, key }: Verified,
  find: Find,
  rules: TokenRules,
  nowSeconds: number,
): boolean {
  if (find(kid) !== key) return false;
  checkTimes(claims, rules.clockToleranceSeconds, nowSeconds);
  return true;
}
function verify(token: string, find: Find, rules: TokenRules, nowSeconds: number): Verified {
  const jws = parseCompact(token);
  if (typeof jws === 'string') throw refuseToken(jws === 'malformed' ? 'token-malformed' : jws);
  const kid = checkHeader(jws.header);
  const key = find(kid);
  const signed = verifySignature(jws, key);
  if (signed === undefined) throw refuseToken('signature-mismatch');
  return { claims: frozen(checkClaims(signed, jws.header, rules, nowSeconds)), kid, key };
}
/** Claims are shared by every request that brings the same token: no handler may change them for the next. */
function frozen(claims: JsonObject): JsonObject {
  // Not by recursion: claims may be nested deeper than the stack.
  const rest: object[] = [claims];
  for (const next of rest)
    for (const member of Object.values(Object.freeze(next)))
      if (typeof member === 'object' && member !== null) rest.push(member);
  return claims;
}
/** Checks the header before any key is looked for, and gives its `kid`. Members that carry keys are never read. */
function checkHeader({ alg, crit, b64, typ, kid }: JsonObject): string | undefined {
  // RFC 7515 §4.1.1, RFC 8725 §2.1, §3.1, §3.2: the verifier names the algorithm, the header must equal it.
  if (alg !== 'RS256') throw refuseToken('algorithm-refused');
  // RFC 7515 §4.1.11, RFC 7797 §6: no extension is understood here. Stricter: `b64` without `crit` neither.
  if (crit !== undefined || b64 !== undefined) throw refuseToken('critical-header');
  // RFC 8725 §3.11, RFC 9068 §2.1
  const type = typeof typ === 'string' ? mediaType(typ) : typ;
  if (type !== undefined && type !== 'jwt' && type !== 'at+jwt') throw refuseToken('type-refused');
  // RFC 7515 §4.1.4, RFC 8725 §3.10
  if (kid !== undefined && typeof kid !== 'string') throw refuseToken('key-id-malformed');
  return kid;
}
