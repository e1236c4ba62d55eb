// The checks on a DPoP proof (RFC 9449 §4.3), the nonce last. Promises: the key's holder made the proof for
// this method, URI, time and token. Does not count DPoP fields (§4.3(1)) or check binding and replay:
// facts.ts and caller.ts do.
import { createHmac, hash } from 'node:crypto';
import { isFiniteNumber, isJsonObject, type JsonObject } from '../base/encoding.ts';
import { Cache } from '../base/cache.ts';
import { refuse, Refused } from '../base/refusal.ts';
import { factsOf, importProofKey, isOneOf, type Algorithm, type VerificationKey } from '../keys/jwk.ts';
import { isSameUri, requestUri, type RequestFacts, type UriOptions } from '../request/facts.ts';
import { mediaType, parseCompact, verifySignature, type UnverifiedJws } from '../jws/jws.ts';

const MAX_IMPORTED_KEYS = 1_000;

/** A nonce is current for this long, and accepted for one slot more. */
const SLOT_MILLIS = 60_000;

export interface ProofOptions extends UriOptions {
  /** How old a proof may be. Default: 300. */
  readonly dpopIatOffsetSeconds: number;
  /** How far in the future a proof may have been issued. Default: 30. */
  readonly dpopIatLeewaySeconds: number;
  /** The algorithms of proofs. Default: all six. */
  readonly dpopAlgorithms: readonly Algorithm[];
  /** Turns nonces on: at least 32 characters, shared by the replicas. */
  readonly dpopNonceSecret: string | undefined;
}

export class ProofVerifier {
  readonly #options;
  readonly #importedKeys = new Cache<VerificationKey>(MAX_IMPORTED_KEYS);

  constructor(options: ProofOptions) {
    this.#options = options;
  }

  /** Checks a proof for a token and a request (RFC 9449 §4.3). `thumbprint` is that of its key (RFC 7638). */
  verify(proof: string, token: string, facts: RequestFacts, nowSeconds: number) {
    const options = this.#options;
    // RFC 9449 §4.3(2)
    const jws = parseCompact(proof);
    if (jws instanceof Refused) return refuse('proof-malformed');

    const header = checkProofHeader(jws.header, options);
    if (header instanceof Refused) return header;

    const claims = checkProofClaims(jws.payload, token, facts, options, nowSeconds);
    if (claims instanceof Refused) return claims;

    const thumbprint = this.#thumbprintOfSigner(jws, header);
    if (thumbprint instanceof Refused) return thumbprint;

    // Last, so that only a client with a good proof gets a nonce. A fresh one is for the response.
    const freshNonce =
      options.dpopNonceSecret === undefined
        ? undefined
        : checkNonce(options.dpopNonceSecret, jws.payload.nonce, nowSeconds * 1000);
    if (freshNonce instanceof Refused) return freshNonce;

    // The last time that it can pass.
    const expiresAtSeconds = claims.iat + options.dpopIatOffsetSeconds;
    return { thumbprint, jti: claims.jti, expiresAtSeconds, freshNonce };
  }

  #thumbprintOfSigner(jws: UnverifiedJws, { alg, jwk }: { alg: Algorithm; jwk: JsonObject }) {
    // RFC 9449 §4.3(7)
    const key = importProofKey(jwk, alg, this.#importedKeys);
    if (typeof key === 'string') return refuse('proof-key');

    // RFC 9449 §4.3(6)
    if (verifySignature(jws, key) === undefined) return refuse('proof-signature');

    const { thumbprint } = factsOf(key);
    this.#importedKeys.offer(alg + thumbprint, () => key);
    return thumbprint;
  }
}

function checkProofClaims(
  { jti, htm, htu, iat, ath }: JsonObject,
  token: string,
  facts: RequestFacts,
  options: ProofOptions,
  nowSeconds: number,
) {
  // RFC 9449 §4.3(3), §4.2. Stricter: bounded (§11.1).
  if (typeof jti !== 'string' || jti.length < 1 || jti.length > 256) return refuse('proof-jti');
  if (!isFiniteNumber(iat)) return refuse('proof-iat');

  // RFC 9449 §4.3(8), RFC 9110 §9.1: case-sensitive.
  if (htm !== facts.method) return refuse('proof-htm');

  // RFC 9449 §4.3(9)
  const uri = requestUri(facts, options);
  if (uri instanceof Refused) return uri;
  if (!isSameUri(htu, uri)) return refuse('proof-htu');

  // RFC 9449 §4.3(11)
  if (iat < nowSeconds - options.dpopIatOffsetSeconds) return refuse('proof-too-old');
  if (iat > nowSeconds + options.dpopIatLeewaySeconds) return refuse('proof-too-new');

  // RFC 9449 §4.3(12), first half
  return ath === hash('sha256', token, 'base64url') ? { jti, iat } : refuse('proof-ath');
}

function checkProofHeader({ typ, alg, crit, b64, jwk }: JsonObject, { dpopAlgorithms }: ProofOptions) {
  // RFC 9449 §4.3(4)
  if (mediaType(typ) !== 'dpop+jwt') return refuse('proof-type');

  // RFC 9449 §4.3(5)
  if (!isOneOf(dpopAlgorithms, alg)) return refuse('proof-algorithm');

  // RFC 7515 §4.1.11, RFC 7797 §6
  if (crit !== undefined || b64 !== undefined) return refuse('proof-critical');

  // RFC 9449 §4.2
  if (!isJsonObject(jwk)) return refuse('proof-key');

  return { alg, jwk };
}

/**
 * Nonces without state (RFC 9449 §9): the HMAC of a time slot, the same for replicas with one secret. Accepts
 * those of this slot and the previous one. Returns a fresh nonce if the given one is of the previous slot,
 * and in every refusal. `secret` has at least 32 characters.
 */
export function checkNonce(secret: string, nonce: unknown, nowMillis: number) {
  const slot = Math.floor(nowMillis / SLOT_MILLIS);
  const freshNonce = nonceOf(secret, slot);
  // Not in constant time: nonces are not secret.
  if (nonce === freshNonce) return undefined;
  if (nonce === nonceOf(secret, slot - 1)) return freshNonce;

  // RFC 9449 §4.3(10), §9: wrong or missing.
  return refuse('proof-nonce').with({ freshNonce });
}

/** In base64url (RFC 9449 §8.1). */
function nonceOf(secret: string, slot: number) {
  return createHmac('sha256', secret).update(`gatehouse DPoP nonce ${slot}`).digest('base64url');
}
