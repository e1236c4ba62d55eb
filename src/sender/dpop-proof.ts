// The checks on a DPoP proof (RFC 9449 §4.3), cheap before dear; (1) is in credentials.ts, the key and replay in caller.ts.
// Promises: a VerifiedProof was made by the holder of its key for this method, URI, time and verified token.
import { hash } from 'node:crypto';
import { asJsonObject, isFiniteNumber, type JsonObject } from '../base/encoding.ts';
import {
  factsOf,
  importProofKey,
  isProofAlgorithm,
  type Algorithm,
  type VerificationKey,
} from '../keys/jwk.ts';
import { Memory } from '../base/lru.ts';
import { refuseProof, Refused } from '../base/refusal.ts';
import { sealing, type Sealed } from '../base/sealed.ts';
import { mediaType, parseCompact } from '../token/compact.ts';
import { verifySignature } from '../token/signature.ts';
import { normalUri } from '../request/uri.ts';
import type { Nonces } from './dpop-nonce.ts';

const KNOWN_KEYS = 1_000;
/** Seconds before and after now in which a proof's `iat` may lie. */
export type ProofRules = Readonly<{ dpopIatOffsetSeconds: number; dpopIatLeewaySeconds: number }>;
/** What a proof must be about. `uri` is in normal form; `offerNonce` is called with a nonce that the answer shall carry. */
export type ProofSubject = Readonly<{
  method: string;
  uri: string | undefined;
  token: string;
  nowMillis: number;
  offerNonce: (nonce: string) => void;
}>;
/** The key's RFC 7638 thumbprint, and the seconds since the epoch up to which the proof could be accepted. */
type Proven = Readonly<{ thumbprint: string; jti: string; expiresAt: number }>;
/** A proof that passed RFC 9449 §4.3(2) to (12), first half. Only a `ProofVerifier` makes one. */
export type VerifiedProof = Sealed<Proven, 'VerifiedProof'>;
const { seal, open } = sealing<Proven, 'VerifiedProof'>();
export const provenBy = open;
/** Throws `Refused`. */
export type ProofVerifier = (proof: string, subject: ProofSubject) => VerifiedProof;
/** A verifier of proofs (RFC 9449 §4.3) that demands nonces (§9) if there are any; `rules` are in seconds. */
export function createProofVerifier(rules: ProofRules, nonces: Nonces | undefined): ProofVerifier {
  const known = new Memory<VerificationKey>(KNOWN_KEYS);
  return (proof, subject) => {
    // RFC 9449 §4.3(2)
    const jws = parseCompact(proof);
    if (typeof jws === 'string') throw refuseProof('proof-malformed');
    const { alg, jwk } = checkHeader(jws.header);
    const { jti, iat } = checkClaims(jws.payload, subject, rules);
    // RFC 9449 §4.3(7)
    const key = importProofKey(jwk, alg, known);
    if (typeof key === 'string') throw refuseProof('proof-key');
    // RFC 9449 §4.3(6)
    if (verifySignature(jws, key) === undefined) throw refuseProof('proof-signature');
    known.set(alg + factsOf(key).thumbprint, key);
    if (nonces !== undefined) checkNonce(jws.payload.nonce, nonces, subject);
    return seal({ thumbprint: factsOf(key).thumbprint, jti, expiresAt: iat + rules.dpopIatOffsetSeconds });
  };
}
function checkHeader({ typ, alg, crit, b64, jwk }: JsonObject): { alg: Algorithm; jwk: JsonObject } {
  // RFC 9449 §4.3(4)
  if (typeof typ !== 'string' || mediaType(typ) !== 'dpop+jwt') throw refuseProof('proof-type');
  // RFC 9449 §4.3(5)
  if (!isProofAlgorithm(alg)) throw refuseProof('proof-algorithm');
  // RFC 7515 §4.1.11, RFC 7797 §6
  if (crit !== undefined || b64 !== undefined) throw refuseProof('proof-critical');
  // RFC 9449 §4.2
  const members = asJsonObject(jwk);
  if (members === undefined) throw refuseProof('proof-key');
  return { alg, jwk: members };
}
function checkClaims(
  { jti, htm, htu, iat, ath }: JsonObject,
  subject: ProofSubject,
  rules: ProofRules,
): { jti: string; iat: number } {
  // RFC 9449 §4.3(3), §4.2. Stricter: the length of `jti` is bounded (§11.1).
  if (typeof jti !== 'string' || jti.length < 1 || jti.length > 256) throw refuseProof('proof-jti');
  if (!isFiniteNumber(iat)) throw refuseProof('proof-iat');
  // RFC 9449 §4.3(8), RFC 9110 §9.1: methods are case-sensitive.
  if (htm !== subject.method) throw refuseProof('proof-htm');
  // RFC 9449 §4.3(9)
  if (typeof htu !== 'string' || subject.uri === undefined || normalUri(htu) !== subject.uri)
    throw refuseProof('proof-htu');
  // RFC 9449 §4.3(11)
  const nowSeconds = Math.floor(subject.nowMillis / 1000);
  if (iat < nowSeconds - rules.dpopIatOffsetSeconds) throw refuseProof('proof-too-old');
  if (iat > nowSeconds + rules.dpopIatLeewaySeconds) throw refuseProof('proof-too-new');
  // RFC 9449 §4.3(12), first half
  if (ath !== hash('sha256', subject.token, 'base64url')) throw refuseProof('proof-ath');
  return { jti, iat };
}
/** RFC 9449 §4.3(10), §9: a missing nonce is as bad as a wrong one; the answer says which one to use. */
function checkNonce(nonce: unknown, nonces: Nonces, { nowMillis, offerNonce }: ProofSubject): void {
  const age = nonces.age(nonce, nowMillis);
  if (age !== 'present') offerNonce(nonces.present(nowMillis));
  if (age === undefined) throw new Refused({ kind: 'use_dpop_nonce', reason: 'proof-nonce' });
}
