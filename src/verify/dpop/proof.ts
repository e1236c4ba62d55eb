// The checks on a DPoP proof (RFC 9449 §4.3), inexpensive ones first; (1) is in credentials.ts, (10) in
// nonce.ts, the token's key and replay are in caller.ts. Promises: a proof that passes was made by the
// holder of its key for this method, URI, time and token.
import { hash } from 'node:crypto';
import { isFiniteNumber, isJsonObject, type JsonObject } from '../base/encoding.ts';
import { Cache } from '../base/cache.ts';
import { refuse, Refused } from '../base/refusal.ts';
import { factsOf, importProofKey, isOneOf, type Algorithm, type VerificationKey } from '../keys/jwk.ts';
import { isSameUri, requestUri, type RequestFacts, type UriOptions } from '../request/uri.ts';
import { mediaType, parseCompact, type UnverifiedJws } from '../token/compact.ts';
import { verifySignature } from '../token/signature.ts';
import { createNonceCheck } from './nonce.ts';

const MAX_IMPORTED_KEYS = 1_000;

/** How proofs are judged; settings decide. */
export interface ProofOptions extends UriOptions {
  /** How many seconds a proof's `iat` may lie before now. */
  readonly dpopIatOffsetSeconds: number;
  /** And how many after it. */
  readonly dpopIatLeewaySeconds: number;
  /** Those that a proof may be signed with. */
  readonly dpopAlgorithms: readonly Algorithm[];
  /** With one, proofs need nonces. */
  readonly dpopNonceSecret: string | undefined;
}

/** What is known of a proof that passed. */
export interface Proof {
  /** Of its key (RFC 7638). */
  readonly thumbprint: string;
  readonly jti: string;
  /** The seconds since the epoch up to which it could be accepted. */
  readonly expiresAt: number;
  /** A nonce that the answer shall carry when that of the proof will soon be too old. */
  readonly freshNonce: string | undefined;
}

/**
 * A verifier of proofs (RFC 9449 §4.3), each for its token and its request at `nowMillis` (since the epoch).
 * It gives what is known of the proof, or why it is refused.
 */
export function createProofVerifier(options: ProofOptions) {
  const { dpopIatOffsetSeconds, dpopIatLeewaySeconds, dpopNonceSecret } = options;
  const importedKeys = new Cache<VerificationKey>(MAX_IMPORTED_KEYS);
  const checkNonce = dpopNonceSecret === undefined ? () => undefined : createNonceCheck(dpopNonceSecret);

  function parseProofClaims(
    { jti, htm, htu, iat, ath }: JsonObject,
    token: string,
    facts: RequestFacts,
    nowSeconds: number,
  ) {
    // RFC 9449 §4.3(3), §4.2. Stricter: the length of `jti` is bounded (§11.1).
    if (typeof jti !== 'string' || jti.length < 1 || jti.length > 256) return refuse('proof-jti');
    if (!isFiniteNumber(iat)) return refuse('proof-iat');

    // RFC 9449 §4.3(8), RFC 9110 §9.1: methods are case-sensitive.
    if (htm !== facts.method) return refuse('proof-htm');

    // RFC 9449 §4.3(9)
    const uri = requestUri(facts, options);
    if (uri instanceof Refused) return uri;
    if (!isSameUri(htu, uri)) return refuse('proof-htu');

    // RFC 9449 §4.3(11)
    if (iat < nowSeconds - dpopIatOffsetSeconds) return refuse('proof-too-old');
    if (iat > nowSeconds + dpopIatLeewaySeconds) return refuse('proof-too-new');

    // RFC 9449 §4.3(12), first half
    if (ath !== hash('sha256', token, 'base64url')) return refuse('proof-ath');

    return { jti, iat };
  }

  function thumbprintOfSigner(jws: UnverifiedJws, { alg, jwk }: ProofHeader) {
    // RFC 9449 §4.3(7)
    const key = importProofKey(jwk, alg, importedKeys);
    if (typeof key === 'string') return refuse('proof-key');

    // RFC 9449 §4.3(6)
    if (verifySignature(jws, key) === undefined) return refuse('proof-signature');

    const { thumbprint } = factsOf(key);
    importedKeys.offer(alg + thumbprint, key);
    return thumbprint;
  }

  return (proof: string, token: string, facts: RequestFacts, nowMillis: number): Proof | Refused => {
    // RFC 9449 §4.3(2)
    const jws = parseCompact(proof);
    if (typeof jws === 'string') return refuse('proof-malformed');

    const header = parseProofHeader(jws.header, options.dpopAlgorithms);
    if (header instanceof Refused) return header;

    const claims = parseProofClaims(jws.payload, token, facts, Math.floor(nowMillis / 1000));
    if (claims instanceof Refused) return claims;

    const thumbprint = thumbprintOfSigner(jws, header);
    if (thumbprint instanceof Refused) return thumbprint;

    const freshNonce = checkNonce(jws.payload.nonce, nowMillis);
    if (freshNonce instanceof Refused) return freshNonce;

    const { jti, iat } = claims;
    return { thumbprint, jti, expiresAt: iat + dpopIatOffsetSeconds, freshNonce };
  };
}

type ProofHeader = Exclude<ReturnType<typeof parseProofHeader>, Refused>;

function parseProofHeader({ typ, alg, crit, b64, jwk }: JsonObject, algorithms: readonly Algorithm[]) {
  // RFC 9449 §4.3(4)
  if (mediaType(typ) !== 'dpop+jwt') return refuse('proof-type');

  // RFC 9449 §4.3(5)
  if (!isOneOf(algorithms, alg)) return refuse('proof-algorithm');

  // RFC 7515 §4.1.11, RFC 7797 §6
  if (crit !== undefined || b64 !== undefined) return refuse('proof-critical');

  // RFC 9449 §4.2
  if (!isJsonObject(jwk)) return refuse('proof-key');

  return { alg, jwk };
}
