// A JSON Web Key becomes a key that can verify, or is turned away with the reason. Trusts nothing in the JWK: type, size and
// purpose are settled here, because crypto.verify takes whatever key it is given (RFC 8725 §3.1). Does not say whose key it is.
import { constants, createPublicKey, hash, type VerifyKeyObjectInput } from 'node:crypto';
import { decodeBase64url, isTextArray, type JsonObject } from '../base/encoding.ts';
import type { KeyFlaw } from '../base/events.ts';
import type { LruCache } from '../base/lru.ts';
import { sealing, type Sealed } from '../base/sealed.ts';

/** Per algorithm: the key it takes (RFC 7518 §3.1, RFC 8037 §3.1) and how node:crypto verifies with it. */
const ALGORITHMS = {
  ES256: { kty: 'EC', crv: 'P-256', bytes: 32, digest: 'sha256', options: { dsaEncoding: 'ieee-p1363' } },
  ES384: { kty: 'EC', crv: 'P-384', bytes: 48, digest: 'sha384', options: { dsaEncoding: 'ieee-p1363' } },
  ES512: { kty: 'EC', crv: 'P-521', bytes: 66, digest: 'sha512', options: { dsaEncoding: 'ieee-p1363' } },
  EdDSA: { kty: 'OKP', crv: 'Ed25519', bytes: 32, digest: null, options: {} },
  // RFC 7518 §3.5: a salt as long as the digest.
  PS256: {
    kty: 'RSA',
    crv: undefined,
    digest: 'sha256',
    options: { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 },
  },
  RS256: { kty: 'RSA', crv: undefined, digest: 'sha256', options: {} },
} as const;
export type Algorithm = keyof typeof ALGORITHMS;
/** The algorithms of proofs. Access tokens are signed with RS256 only. */
export const PROOF_ALGORITHMS = Object.keys(ALGORITHMS);
export const isProofAlgorithm = (value: unknown): value is Algorithm =>
  PROOF_ALGORITHMS.some((name) => name === value);
/** What crypto.verify takes, the RFC 7638 thumbprint (base64url), and the provider's name for the key, if it gave one. */
type KeyFacts = Readonly<{
  digest: string | null;
  input: VerifyKeyObjectInput;
  thumbprint: string;
  kid: string | undefined;
}>;
/** A public key that verifies signatures of exactly one algorithm. Only this file makes one. */
export type VerificationKey = Sealed<KeyFacts, 'VerificationKey'>;
const { seal, open } = sealing<KeyFacts, 'VerificationKey'>();
export const factsOf = open;
/** Members that only a private or symmetric key has (RFC 7518 §6.2.2, §6.3.2, §6.4); createPublicKey would quietly take it. */
const hasPrivateMember = (jwk: JsonObject) =>
  ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'].some((name) => jwk[name] !== undefined);
/** Imports a key of the provider's set for RS256, or says why it is not usable (RFC 7517 §4, RFC 7518 §6.3.1). */
export function importSigningKey(jwk: JsonObject): VerificationKey | KeyFlaw {
  const { kty, kid, use, key_ops: operations, alg, n, e } = jwk;
  if (kty !== 'RSA') return 'key-type';
  if (hasPrivateMember(jwk)) return 'private-member';
  // RFC 7517 §4.5, §4.2, §4.3, §4.4
  if (kid !== undefined && typeof kid !== 'string') return 'key-id';
  if (use !== undefined && use !== 'sig') return 'use';
  if (operations !== undefined && !(isTextArray(operations) && operations.includes('verify')))
    return 'key-operations';
  if (alg !== undefined && alg !== 'RS256') return 'algorithm';
  const members = { e, kty, n };
  return rsaFlaw(members, 8192, Infinity) ?? importPublic(members, 'RS256', thumbprintOf(members), kid);
}
/** Imports the key of a proof (RFC 9449 §4.3(5), (7)), or says why it is refused. The caller chooses this key: its size is bounded
 * because a larger one makes the service pay, and one that is `known` (by algorithm and thumbprint) is not imported again. */
export function importProofKey(
  jwk: JsonObject,
  algorithm: Algorithm,
  known: LruCache<VerificationKey>,
): VerificationKey | KeyFlaw {
  const facts = ALGORITHMS[algorithm];
  const { kty, crv, x, y, n, e } = jwk;
  if (hasPrivateMember(jwk)) return 'private-member';
  if (kty !== facts.kty || (facts.crv !== undefined && crv !== facts.crv)) return 'key-type';
  // RFC 7638 §3.2, RFC 8037 §2: the members that a key must have, in this order, and nothing else.
  const members: JsonObject =
    kty === 'RSA' ? { e, kty, n } : kty === 'EC' ? { crv, kty, x, y } : { crv, kty, x };
  if (Object.values(members).some((member) => typeof member !== 'string')) return 'encoding';
  const thumbprint = thumbprintOf(members);
  return (
    known.get(algorithm + thumbprint) ??
    (facts.kty === 'RSA' ? rsaFlaw(members, 4096, 32) : pointFlaw(members, facts.bytes)) ??
    importPublic(members, algorithm, thumbprint)
  );
}
function importPublic(
  members: JsonObject,
  algorithm: Algorithm,
  thumbprint: string,
  kid?: string,
): VerificationKey | KeyFlaw {
  const { digest, options } = ALGORITHMS[algorithm];
  try {
    return seal({
      digest,
      input: { key: createPublicKey({ key: members, format: 'jwk' }), ...options },
      thumbprint,
      kid,
    });
  } catch (failure) {
    // OpenSSL's refusals, such as a point that is not on its curve, have a code.
    if (failure instanceof Error && 'code' in failure) return 'not-importable';
    throw failure;
  }
}
/** RFC 7638 §3: fixed words and base64url need no escapes, so JSON.stringify gives the canonical form. */
const thumbprintOf = (members: JsonObject) => hash('sha256', JSON.stringify(members), 'base64url');
function rsaFlaw({ n, e }: JsonObject, maxBits: number, maxExponentBits: number): KeyFlaw | undefined {
  const [modulus, exponent] = [decodeInteger(n), decodeInteger(e)];
  if (modulus === undefined || exponent === undefined) return 'encoding';
  // RFC 7518 §3.3: 2048 bits or larger.
  if (bitLength(modulus) < 2048 || bitLength(modulus) > maxBits || !isOdd(modulus)) return 'size';
  // RFC 8017 §3.1: an odd exponent of at least 3; with 1 every text would be its own signature.
  return bitLength(exponent) < 2 || bitLength(exponent) > maxExponentBits || !isOdd(exponent)
    ? 'exponent'
    : undefined;
}
/** RFC 7518 §6.2.1.2, RFC 8037 §2: coordinates have the full length of the curve; OKP keys have no `y`. */
const pointFlaw = ({ kty, x, y }: JsonObject, bytes: number): KeyFlaw | undefined =>
  [x, kty === 'EC' ? y : x].every(
    (value) => typeof value === 'string' && decodeBase64url(value)?.length === bytes,
  )
    ? undefined
    : 'encoding';
/** Base64urlUInt (RFC 7518 §2): big-endian in the fewest bytes, so without leading zeros. */
function decodeInteger(value: unknown): Buffer | undefined {
  const bytes = typeof value === 'string' ? decodeBase64url(value) : undefined;
  return bytes?.[0] ? bytes : undefined;
}
const bitLength = (integer: Buffer) => integer.length * 8 - (Math.clz32(integer[0] ?? 0) - 24);
const isOdd = (integer: Buffer) => (integer[integer.length - 1] ?? 0) % 2 === 1;
