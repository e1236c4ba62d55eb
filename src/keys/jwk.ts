// A JSON Web Key becomes a key that can verify, or is turned away with the reason. Trusts nothing in the
// JWK: type, size and purpose are settled here, because crypto.verify takes whatever key it is given
// (RFC 8725 §3.1). Does not say whose key it is: the provider's set, or the token that is bound to it, does.
import { constants, createPublicKey, hash, type VerifyKeyObjectInput } from 'node:crypto';
import { decodeBase64url, isTextArray, type JsonObject } from '../base/encoding.ts';
import type { KeyFlaw } from '../base/events.ts';
import type { Memory } from '../base/memory.ts';
import { sealing, type Sealed } from '../base/sealed.ts';

const MAX_SIGNING_KEY_BITS = 8192;
// A caller chooses the key of a proof, and a larger one makes the service pay.
const MAX_PROOF_KEY_BITS = 4096;
const MAX_PROOF_EXPONENT_BITS = 32;

/** RFC 7518 §3.4: the two integers side by side, no ASN.1. */
const ECDSA = { dsaEncoding: 'ieee-p1363' } as const;
/** RFC 7518 §3.5: a salt as long as the digest. */
const PSS = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 } as const;

/** Per algorithm: the key it takes (RFC 7518 §3.1, RFC 8037 §3.1) and how node:crypto verifies with it. */
const ALGORITHMS = {
  ES256: { kty: 'EC', crv: 'P-256', bytes: 32, digest: 'sha256', options: ECDSA },
  ES384: { kty: 'EC', crv: 'P-384', bytes: 48, digest: 'sha384', options: ECDSA },
  ES512: { kty: 'EC', crv: 'P-521', bytes: 66, digest: 'sha512', options: ECDSA },
  EdDSA: { kty: 'OKP', crv: 'Ed25519', bytes: 32, digest: null, options: {} },
  PS256: { kty: 'RSA', crv: undefined, digest: 'sha256', options: PSS },
  RS256: { kty: 'RSA', crv: undefined, digest: 'sha256', options: {} },
} as const;

export type Algorithm = keyof typeof ALGORITHMS;

/** The algorithms of proofs. Access tokens are signed with RS256 only. */
export const PROOF_ALGORITHMS = Object.keys(ALGORITHMS);

export const isProofAlgorithm = (value: unknown): value is Algorithm =>
  PROOF_ALGORITHMS.some((name) => name === value);

interface KeyFacts {
  /** What crypto.verify takes. */
  readonly digest: string | null;
  readonly input: VerifyKeyObjectInput;
  /** RFC 7638, base64url. */
  readonly thumbprint: string;
  /** The provider's name for the key, if it gave one. */
  readonly kid: string | undefined;
}

/** A public key that verifies signatures of exactly one algorithm. Only this file makes one. */
export type VerificationKey = Sealed<KeyFacts, 'VerificationKey'>;

const { seal, open } = sealing<KeyFacts, 'VerificationKey'>();

export const factsOf = open;

/** RFC 7518 §6.2.2, §6.3.2, §6.4: only keys that are secret have these; createPublicKey would take them. */
const SECRET_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

/** RFC 7638 §3.2, RFC 8037 §2: the members that a key must have, in this order, and nothing else. */
function requiredMembers({ crv, e, kty, n, x, y }: JsonObject): JsonObject {
  if (kty === 'RSA') return { e, kty, n };
  return kty === 'EC' ? { crv, kty, x, y } : { crv, kty, x };
}

/** The same, each of them text, of a public key that fits the algorithm; or why it is refused. */
function membersFor(algorithm: Algorithm, jwk: JsonObject): JsonObject | KeyFlaw {
  if (SECRET_MEMBERS.some((name) => jwk[name] !== undefined)) return 'private-member';

  const { kty, crv } = ALGORITHMS[algorithm];
  const members = requiredMembers(jwk);
  if (members.kty !== kty || members.crv !== crv) return 'key-type';

  const areText = Object.values(members).every((member) => typeof member === 'string');
  return areText ? members : 'encoding';
}

/** Imports a key of the provider's set for RS256, or says why not (RFC 7517 §4, RFC 7518 §6.3.1). */
export function importSigningKey(jwk: JsonObject): VerificationKey | KeyFlaw {
  const members = membersFor('RS256', jwk);
  if (typeof members === 'string') return members;

  const { kid, use, key_ops: operations, alg } = jwk;
  // RFC 7517 §4.5, §4.2, §4.3, §4.4
  if (kid !== undefined && typeof kid !== 'string') return 'key-id';
  if (use !== undefined && use !== 'sig') return 'use';
  const mayVerify = isTextArray(operations) && operations.includes('verify');
  if (operations !== undefined && !mayVerify) return 'key-operations';
  if (alg !== undefined && alg !== 'RS256') return 'algorithm';

  const flaw = rsaFlaw(members, MAX_SIGNING_KEY_BITS, Infinity);
  return flaw ?? importPublic(members, 'RS256', kid);
}

/**
 * Imports the key of a proof (RFC 9449 §4.3(5), (7)), or says why it is refused. A key that is in `imported`,
 * by algorithm and thumbprint, is not imported again.
 */
export function importProofKey(
  jwk: JsonObject,
  algorithm: Algorithm,
  imported: Memory<VerificationKey>,
): VerificationKey | KeyFlaw {
  const members = membersFor(algorithm, jwk);
  if (typeof members === 'string') return members;

  const key = imported.get(algorithm + thumbprintOf(members));
  if (key !== undefined) return key;

  const facts = ALGORITHMS[algorithm];
  const flaw =
    facts.kty === 'RSA'
      ? rsaFlaw(members, MAX_PROOF_KEY_BITS, MAX_PROOF_EXPONENT_BITS)
      : pointFlaw(members, facts.bytes);
  return flaw ?? importPublic(members, algorithm);
}

function importPublic(members: JsonObject, algorithm: Algorithm, kid?: string) {
  const { digest, options } = ALGORITHMS[algorithm];
  try {
    const key = createPublicKey({ key: members, format: 'jwk' });
    return seal({ digest, input: { key, ...options }, thumbprint: thumbprintOf(members), kid });
  } catch (failure) {
    // OpenSSL's refusals, such as a point that is not on its curve, have a code.
    if (failure instanceof Error && 'code' in failure) return 'not-importable';
    throw failure;
  }
}

/** RFC 7638 §3: fixed words and base64url need no escapes, so JSON.stringify gives the canonical form. */
const thumbprintOf = (members: JsonObject) => hash('sha256', JSON.stringify(members), 'base64url');

function rsaFlaw({ n, e }: JsonObject, maxBits: number, maxExponentBits: number) {
  const modulus = binaryDigits(n);
  const exponent = binaryDigits(e);
  if (modulus === undefined || exponent === undefined) return 'encoding';

  // RFC 7518 §3.3: 2048 bits or larger.
  const bits = modulus.length;
  if (bits < 2048 || bits > maxBits || modulus.endsWith('0')) return 'size';

  // RFC 8017 §3.1: an odd exponent of at least 3; with 1 every text would be its own signature.
  const exponentBits = exponent.length;
  const isGood = exponentBits >= 2 && exponentBits <= maxExponentBits && exponent.endsWith('1');
  return isGood ? undefined : 'exponent';
}

/** RFC 7518 §6.2.1.2, RFC 8037 §2: coordinates have the full length of the curve; OKP keys have no `y`. */
function pointFlaw({ kty, x, y }: JsonObject, bytes: number) {
  const coordinates = kty === 'EC' ? [x, y] : [x];
  const areWhole = coordinates.every((value) => decodeBase64url(String(value))?.length === bytes);
  return areWhole ? undefined : 'encoding';
}

/** Of a Base64urlUInt (RFC 7518 §2), which is big-endian in the fewest bytes, so without leading zeros. */
function binaryDigits(value: unknown) {
  const bytes = decodeBase64url(String(value));
  if (!bytes?.[0]) return undefined;

  const integer = BigInt(`0x${bytes.toString('hex')}`);
  return integer.toString(2);
}
