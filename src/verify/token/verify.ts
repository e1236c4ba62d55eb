// The checks on an access token in their order (docs/how-a-request-is-checked.md), and the token cache. Until
// the signature is verified, `kid` and `iss` only choose a key, never a URL; a wrong `iss` is never logged.
// Promises: a returned VerifiedToken has passed every check, cached or not. Does not check guards
// (gate/rules/guards.ts) or binding (verify/caller.ts).
import { hash } from 'node:crypto';
import { andThen, type Clock, type MaybePromise } from '../base/clock.ts';
import type { JsonObject } from '../base/encoding.ts';
import type { Count } from '../base/events.ts';
import { Cache } from '../base/cache.ts';
import { refuse, Refused, type Found } from '../base/refusal.ts';
import { sealing, type Sealed } from '../base/sealed.ts';
import { ALGORITHM_NAMES, factsOf, isOneOf, type Algorithm, type VerificationKey } from '../keys/jwk.ts';
import type { Keys } from '../keys/key-set.ts';
import { checkClaims, checkMembers, checkTimes, type TokenOptions } from './claims.ts';
import { mediaType, parseCompact, payloadOf, verifySignature } from '../jws/jws.ts';

/** A trusted issuer. */
export interface Issuer extends TokenOptions {
  readonly name: string;
  readonly algorithms: readonly Algorithm[];
  readonly claimNamespace: string;
  readonly scopeClaim: string;
  /** RFC 8725 §3.8 */
  readonly keys: Keys;
  /** If each tenant of the provider has an `iss` of its own: none is that of this issuer itself. */
  readonly findTenant?: FindIssuer | undefined;
  /** Fetches the keys of each of its tenants. */
  readonly refreshTenants?: (() => Promise<void>) | undefined;
  readonly introspect?: Introspect | undefined;
}

/** Asks an issuer about its tokens (RFC 7662), around the other checks. */
export interface Introspect {
  /** Whether about its JWTs too, which it then counts. */
  readonly isAboutJwts: boolean;
  readonly protect: (verifyToken: TokenVerifier, issuer: Issuer) => TokenVerifier;
  /** Asks about a random token. Resolves with the endpoint, and with why it cannot be used. */
  readonly probe: () => Promise<Probed>;
}

export interface Probed {
  readonly endpoint?: string | undefined;
  readonly problem?: JsonObject | undefined;
}

/** The issuer that an unverified `iss` names. */
type FindIssuer = (iss: unknown) => Issuer | undefined;

interface Verified {
  readonly claims: JsonObject;
  readonly issuer: Issuer;
  readonly found: Found;
}

/** An access token that passed every check. Made only by a `TokenVerifier`. */
export type VerifiedToken = Sealed<Verified, 'VerifiedToken'>;

const { seal, unseal } = sealing<Verified, 'VerifiedToken'>();

/** Throws a `TypeError` for anything but a `VerifiedToken`. */
export const verifiedOf = unseal;

/**
 * Returns a promise only to wait for keys, or for what the issuer says. Once the key is found, refusals name
 * `kid` and issuer.
 */
export type TokenVerifier = (token: string) => MaybePromise<VerifiedToken | Refused>;

/** With the digest of its text. */
interface CachedToken {
  readonly digest: string;
  readonly verified: VerifiedToken;
  readonly kid: string | undefined;
  readonly key: VerificationKey;
}

/** 132 bits: a token is looked up by the end of its signature. */
const KEY_LENGTH = 22;

/** Creates a token verifier, which caches up to `cacheEntries` tokens by SHA-256. */
export function createTokenVerifier(
  issuers: readonly Issuer[],
  clock: Clock,
  cacheEntries: number,
  count?: Count,
): TokenVerifier {
  const cache = new Cache<CachedToken>(cacheEntries);

  function countToken(result: string, { introspect }: Issuer) {
    if (!introspect?.isAboutJwts) count?.('token', result);
  }

  function verifyUncached(token: string): MaybePromise<VerifiedToken | Refused> {
    const jws = parseCompact(token);
    if (jws instanceof Refused) return jws;

    const issuer = issuerNamed(jws.payload.iss, issuers);
    const header = checkTokenHeader(jws.header, issuer?.algorithms ?? ALGORITHM_NAMES);
    if (header instanceof Refused) return header;
    // RFC 7519 §4.1.1, RFC 9068 §4
    if (issuer === undefined) return refuse('issuer-mismatch');

    const { kid, alg } = header;
    return andThen(issuer.keys.find(kid, alg), (key) => {
      if (key instanceof Refused) return key;

      const found = { kid: factsOf(key).kid, issuerName: issuer.name };
      const signed = verifySignature(jws, key);
      if (signed === undefined) return refuse('signature-mismatch').with(found);

      const refused = checkClaims(signed, jws.header, issuer, clock.now() / 1000);
      if (refused !== undefined) return refused.with(found);

      countToken('verified', issuer);
      const verified = seal({ claims: deepFreeze(payloadOf(signed)), issuer, found });
      cache.offer(token.slice(-KEY_LENGTH), () => ({
        digest: hash('sha256', token, 'base64url'),
        verified,
        kid,
        key,
      }));
      return verified;
    });
  }

  function verifyToken(token: string): MaybePromise<VerifiedToken | Refused> {
    const cached = cache.get(token.slice(-KEY_LENGTH));
    // For speed: most tokens that were not seen before need no digest.
    if (cached === undefined || cached.digest !== hash('sha256', token, 'base64url')) {
      return verifyUncached(token);
    }

    const { verified, kid, key } = cached;
    const { claims, issuer } = unseal(verified);
    const { algorithm, thumbprint } = factsOf(key);
    return andThen(issuer.keys.find(kid, algorithm), (current) => {
      if (current instanceof Refused) return current;

      // Tokens expire, and keys change.
      const isSameKey = factsOf(current).thumbprint === thumbprint;
      if (isSameKey && checkTimes(claims, issuer, clock.now() / 1000) === undefined) {
        countToken('remembered', issuer);
        return verified;
      }

      return verifyUncached(token);
    });
  }

  return issuers.reduce<TokenVerifier>(
    (verify, issuer) => issuer.introspect?.protect(verify, issuer) ?? verify,
    verifyToken,
  );
}

/**
 * Seals what an issuer says of a token that is no JWT, and that is active (RFC 7662 §2.2). `members` are
 * `claims` in the words of a JWT.
 */
export function sealResponse(
  claims: JsonObject,
  members: JsonObject,
  issuer: Issuer,
  nowSeconds: number,
): VerifiedToken | Refused {
  const found = { issuerName: issuer.name };
  const refused = checkMembers(members, false, issuer, nowSeconds);
  return refused?.with(found) ?? seal({ claims: deepFreeze(claims), issuer, found });
}

/**
 * Unverified, `iss` only selects the issuer; `checkClaims` checks it. If there is only one, it is selected: a
 * wrong `iss` is refused after the signature. An issuer of its own wins over a tenant.
 */
function issuerNamed(iss: unknown, issuers: readonly Issuer[]) {
  const named = issuers.find(
    ({ issuer, findTenant }) => findTenant === undefined && (issuer === iss || issuers.length === 1),
  );
  return named ?? issuers.map(({ findTenant }) => findTenant?.(iss)).find(Boolean);
}

/** Requests with the same token share its claims. */
function deepFreeze(claims: JsonObject) {
  // Not recursive: claims may be nested deeper than the stack.
  const all: unknown[] = [claims];
  for (const value of all) {
    // `null` counts as frozen. A test's claims may contain themselves.
    if (typeof value !== 'object' || Object.isFrozen(value)) continue;

    Object.freeze(value);
    for (const member of Object.values(Object(value))) all.push(member);
  }
  return claims;
}

/** Never reads members that carry keys. */
function checkTokenHeader({ alg, crit, b64, typ, kid }: JsonObject, algorithms: readonly Algorithm[]) {
  // RFC 7515 §4.1.1, RFC 8725 §2.1, §3.1, §3.2: the operator, not the header, fixes the algorithms.
  if (!isOneOf(algorithms, alg)) return refuse('algorithm-refused');

  // RFC 7515 §4.1.11, RFC 7797 §6: no extension is supported. Stricter: nor is `b64` without `crit`.
  if (crit !== undefined || b64 !== undefined) return refuse('critical-header');

  // RFC 8725 §3.11, RFC 9068 §2.1
  const type = mediaType(typ);
  if (typ !== undefined && type !== 'jwt' && type !== 'at+jwt') return refuse('type-refused');

  // RFC 7515 §4.1.4, RFC 8725 §3.10
  return kid === undefined || typeof kid === 'string' ? { kid, alg } : refuse('key-id-malformed');
}
