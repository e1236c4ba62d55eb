/*
 * A JSON Web Key becomes a key that can verify, or is turned away with the reason.
 * Trusts nothing in the JWK: type, size, encoding and purpose are settled here, before any signature is looked at,
 * because crypto.verify takes whatever key it is given (RFC 8725 §3.1, §3.2).
 * Does not say whose key it is: keys/key-set.ts and sender/proof.ts do.
 */
import { createPublicKey, hash, type KeyObject } from 'node:crypto';
import { decodeBase64url, type JsonObject } from '../encoding.ts';
import type { KeyFlaw } from '../log.ts';

/** The digest with which node:crypto verifies an algorithm's signatures. */
const DIGESTS = { RS256: 'sha256' } as const;
export type Algorithm = keyof typeof DIGESTS;

/** A public key that may verify signatures of exactly one algorithm. Only this file makes one. */
class ImportedKey {
  readonly #key: KeyObject;
  readonly algorithm: Algorithm;
  /** RFC 7638 SHA-256 thumbprint, base64url. */
  readonly thumbprint: string;
  /** The provider's name for the key, if it gave one. */
  readonly kid: string | undefined;

  constructor(key: KeyObject, algorithm: Algorithm, thumbprint: string, kid: string | undefined) {
    this.#key = key;
    this.algorithm = algorithm;
    this.thumbprint = thumbprint;
    this.kid = kid;
  }

  static keyObjectOf(key: ImportedKey): KeyObject {
    return key.#key;
  }

  static digestOf(key: ImportedKey): string {
    return DIGESTS[key.algorithm];
  }
}
export type VerificationKey = ImportedKey;
export const { keyObjectOf, digestOf } = ImportedKey;

/** Members that only a private or symmetric key has (RFC 7518 §6.2.2, §6.3.2, §6.4). */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

/** Imports a key of the provider's set for RS256, or says why it is not usable (RFC 7517 §4, RFC 7518 §6.3.1). */
export function importSigningKey(jwk: JsonObject): VerificationKey | KeyFlaw {
  if (jwk.kty !== 'RSA') return 'key-type';
  // createPublicKey would quietly take a private key and use its public half.
  if (PRIVATE_MEMBERS.some((name) => name in jwk)) return 'private-member';
  // RFC 7517 §4.5: a case-sensitive string.
  if (jwk.kid !== undefined && typeof jwk.kid !== 'string') return 'key-id';
  // RFC 7517 §4.2
  if (jwk.use !== undefined && jwk.use !== 'sig') return 'use';
  // RFC 7517 §4.3
  if (jwk.key_ops !== undefined && !(Array.isArray(jwk.key_ops) && jwk.key_ops.includes('verify'))) return 'key-operations';
  // RFC 7517 §4.4
  if (jwk.alg !== undefined && jwk.alg !== 'RS256') return 'algorithm';
  return importRsa(jwk, { minBits: 2048, maxBits: 8192 }, jwk.kid);
}

function importRsa(jwk: JsonObject, limits: { minBits: number; maxBits: number }, kid?: string): VerificationKey | KeyFlaw {
  const modulus = decodeInteger(jwk.n);
  const exponent = decodeInteger(jwk.e);
  if (modulus === undefined || exponent === undefined) return 'encoding';
  const bits = bitLength(modulus);
  // RFC 7518 §3.3: 2048 bits or larger. The upper limit bounds what one verification costs.
  if (bits < limits.minBits || bits > limits.maxBits || !isOdd(modulus)) return 'size';
  // RFC 8017 §3.1: an odd exponent of at least 3; with 1 every text would be its own signature.
  if (!isOdd(exponent) || bitLength(exponent) < 2) return 'exponent';
  const { n, e } = jwk;
  return importPublic({ e, kty: 'RSA', n }, 'RS256', kid);
}

/** `members` are those that RFC 7638 §3.2 requires, in its order, and nothing else. */
function importPublic(members: Record<string, unknown>, algorithm: Algorithm, kid?: string): VerificationKey | KeyFlaw {
  try {
    const key = createPublicKey({ key: members, format: 'jwk' });
    // RFC 7638 §3: canonical base64url and fixed words need no escapes, so JSON.stringify is the canonical form.
    return new ImportedKey(key, algorithm, hash('sha256', JSON.stringify(members), 'base64url'), kid);
  } catch (failure) {
    if (failure instanceof Error && 'code' in failure) return 'not-importable';
    throw failure;
  }
}

/** Base64urlUInt (RFC 7518 §2): big-endian in the fewest bytes, so without leading zeros. */
function decodeInteger(value: unknown): Buffer | undefined {
  const bytes = typeof value === 'string' ? decodeBase64url(value) : undefined;
  return bytes?.[0] ? bytes : undefined;
}

const bitLength = (integer: Buffer) => integer.length * 8 - (Math.clz32(integer[0] ?? 0) - 24);
const isOdd = (integer: Buffer) => (integer[integer.length - 1] ?? 0) % 2 === 1;
