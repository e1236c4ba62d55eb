// A JSON Web Key becomes a key that can verify, or is turned away with the reason. Trusts nothing in the
// JWK: type, size and purpose are settled here, because crypto.verify takes whatever key it is given
// (RFC 8725 §3.1). Does not say whose key it is: the provider's set, or the token that is bound to it, does.
import {
  constants,
  createPublicKey,
  hash,
  type AsymmetricKeyDetails,
  type VerifyKeyObjectInput,
} from 'node:crypto';
import { isTextArray, type JsonObject } from '../base/encoding.ts';
import type { KeyFlaw } from '../base/events.ts';
import type { Cache } from '../base/cache.ts';
import { sealing, type Sealed } from '../base/sealed.ts';

// Whoever chooses a key decides what each forged signature costs. Callers choose the keys of proofs.
const MAX_SIGNING_BITS = 8192;
const MAX_PROOF_BITS = 4096;
const MAX_EXPONENT = 0xffff_ffff;

/** RFC 7518 §3.4: the two integers side by side, no ASN.1. */
const ECDSA = { dsaEncoding: 'ieee-p1363' } as const;
/** RFC 7518 §3.5: a salt as long as the digest. */
const PSS = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 } as const;

/** Per algorithm: the key it takes (RFC 7518 §3.1, RFC 8037 §3.1) and how node:crypto verifies with it. */
const ALGORITHMS = {
  ES256: { kty: 'EC', crv: 'P-256', digest: 'sha256', options: ECDSA },
  ES384: { kty: 'EC', crv: 'P-384', digest: 'sha384', options: ECDSA },
  ES512: { kty: 'EC', crv: 'P-521', digest: 'sha512', options: ECDSA },
  EdDSA: { kty: 'OKP', crv: 'Ed25519', digest: null, options: {} },
  PS256: { kty: 'RSA', crv: undefined, digest: 'sha256', options: PSS },
  RS256: { kty: 'RSA', crv: undefined, digest: 'sha256', options: {} },
} as const;

/** The name of an algorithm (RFC 7518 §3.1, RFC 8037 §3.1). */
export type Algorithm = keyof typeof ALGORITHMS;

/** All that an operator may choose from, for access tokens and for proofs. */
export const ALGORITHM_NAMES = Object.keys(ALGORITHMS) as readonly Algorithm[];

/** Whether it is one of these: an exact match, in letter case too. */
export const isOneOf = (algorithms: readonly Algorithm[], value: unknown): value is Algorithm =>
  algorithms.some((name) => name === value);

export interface KeyFacts {
  /** The only one that it verifies (RFC 8725 §3.1). */
  readonly algorithm: Algorithm;
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

const { seal, unseal } = sealing<KeyFacts, 'VerificationKey'>();

/** What is known of a key. Throws a `TypeError` for look-alikes. */
export const factsOf = unseal;

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

/**
 * The algorithm of a key: its own `alg` (RFC 7517 §4.4), or without one what its type says; of an RSA key the first
 * on the list that fits. `undefined` for a type that has none.
 */
function algorithmOf({ alg, kty, crv }: JsonObject, algorithms: readonly Algorithm[]) {
  if (alg !== undefined) return alg;

  const fitting = ALGORITHM_NAMES.filter((name) => {
    const { kty: type, crv: curve } = ALGORITHMS[name];
    return type === kty && (curve === undefined || curve === crv);
  });
  return algorithms.find((name) => fitting.includes(name)) ?? fitting[0];
}

/**
 * Imports a key of the provider's set for one of these algorithms, or says why not (RFC 7517 §4, RFC 7518 §6.2.1,
 * §6.3.1, RFC 8037 §2).
 */
export function importSigningKey(
  jwk: JsonObject,
  algorithms: readonly Algorithm[] = ['RS256'],
): VerificationKey | KeyFlaw {
  const algorithm = algorithmOf(jwk, algorithms);
  if (algorithm === undefined) return 'key-type';
  if (!isOneOf(algorithms, algorithm)) return 'algorithm';

  const members = membersFor(algorithm, jwk);
  if (typeof members === 'string') return members;

  const { kid, use, key_ops: operations } = jwk;
  // RFC 7517 §4.5, §4.2, §4.3
  if (kid !== undefined && typeof kid !== 'string') return 'key-id';
  if (use !== undefined && use !== 'sig') return 'use';
  const mayVerify = isTextArray(operations) && operations.includes('verify');
  if (operations !== undefined && !mayVerify) return 'key-operations';

  return importPublic(members, algorithm, MAX_SIGNING_BITS, kid);
}

/**
 * Imports the key of a proof (RFC 9449 §4.3(5), (7)), or says why it is refused. A key that is in
 * `imported`, by algorithm and thumbprint, is not imported again.
 */
export function importProofKey(
  jwk: JsonObject,
  algorithm: Algorithm,
  imported: Cache<VerificationKey>,
): VerificationKey | KeyFlaw {
  const members = membersFor(algorithm, jwk);
  if (typeof members === 'string') return members;

  const key = imported.get(algorithm + thumbprintOf(members));
  return key ?? importPublic(members, algorithm, MAX_PROOF_BITS);
}

function importPublic(members: JsonObject, algorithm: Algorithm, maxBits: number, kid?: string) {
  const { digest, options } = ALGORITHMS[algorithm];
  const thumbprint = thumbprintOf(members);
  try {
    const key = createPublicKey({ key: members, format: 'jwk' });
    // RFC 7518 §2, §6.2.1.2, RFC 8037 §2: only the one spelling of a key comes out again as it went in.
    const exported = requiredMembers({ ...key.export({ format: 'jwk' }) });
    if (thumbprintOf(exported) !== thumbprint) return 'encoding';

    const flaw = members.kty === 'RSA' ? rsaFlaw(members, key.asymmetricKeyDetails, maxBits) : undefined;
    return flaw ?? seal({ algorithm, digest, input: { key, ...options }, thumbprint, kid });
  } catch (failure) {
    // OpenSSL's refusals, such as a point that is not on its curve, have a code.
    if (failure instanceof Error && 'code' in failure) return 'not-importable';
    throw failure;
  }
}

/** RFC 7638 §3: fixed words and base64url need no escapes, so JSON.stringify gives the canonical form. */
const thumbprintOf = (members: JsonObject) => hash('sha256', JSON.stringify(members), 'base64url');

function rsaFlaw(
  { n }: JsonObject,
  { modulusLength = 0, publicExponent = 0n }: AsymmetricKeyDetails = {},
  maxBits: number,
) {
  const lastByte = Buffer.from(String(n), 'base64url').at(-1) ?? 0;
  // RFC 7518 §3.3: 2048 bits or larger.
  if (modulusLength < 2048 || modulusLength > maxBits || lastByte % 2 === 0) return 'size';

  // RFC 8017 §3.1: an odd exponent of at least 3; with 1 every text would be its own signature. Stricter: at
  // most 32 bits, since a verification takes as long as its exponent is.
  const isOdd = publicExponent % 2n === 1n;
  return isOdd && publicExponent > 1 && publicExponent <= MAX_EXPONENT ? undefined : 'exponent';
}
