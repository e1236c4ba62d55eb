// Imports a JSON Web Key for one algorithm, after checks of type, size and purpose, because crypto.verify
// uses any key (RFC 8725 §3.1). Does not check whose key it is: the provider's set or the token's binding
// does.
import { constants, createPublicKey, hash, type KeyObject, type VerifyKeyObjectInput } from 'node:crypto';
import { codeOf, isBareError, isError, isPresent, isTextArray, type JsonObject } from '../base/encoding.ts';
import type { KeyReason } from '../base/events.ts';
import type { Cache } from '../base/cache.ts';
import { sealing, type Sealed } from '../base/sealed.ts';

// Large keys make forgeries costly to refuse, and clients choose a proof's key.
const MAX_SIGNING_BITS = 8192;
const MAX_PROOF_BITS = 4096;
const MAX_EXPONENT = 0xffff_ffff;
/** 32 bits in base64url. */
const MAX_EXPONENT_LENGTH = 6;
/** Of base64url. */
const BITS_OF_A_CHARACTER = 6;

/** RFC 7518 §3.4: no ASN.1. */
const ECDSA = { dsaEncoding: 'ieee-p1363' } as const;
/** RFC 7518 §3.5 */
const PSS = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 } as const;

/** Algorithm → its key type (RFC 7518 §3.1, RFC 8037 §3.1) and what crypto.verify and crypto.sign need. */
export const ALGORITHMS = {
  ES256: { kty: 'EC', crv: 'P-256', digest: 'sha256', options: ECDSA },
  ES384: { kty: 'EC', crv: 'P-384', digest: 'sha384', options: ECDSA },
  ES512: { kty: 'EC', crv: 'P-521', digest: 'sha512', options: ECDSA },
  EdDSA: { kty: 'OKP', crv: 'Ed25519', digest: null, options: undefined },
  PS256: { kty: 'RSA', crv: undefined, digest: 'sha256', options: PSS },
  RS256: { kty: 'RSA', crv: undefined, digest: 'sha256', options: undefined },
} as const;

export type Algorithm = keyof typeof ALGORITHMS;

export const ALGORITHM_NAMES = Object.keys(ALGORITHMS) as readonly Algorithm[];

export const isOneOf = (algorithms: readonly unknown[], value: unknown): value is Algorithm =>
  algorithms.includes(value);

interface KeyFacts {
  /** RFC 8725 §3.1 */
  readonly algorithm: Algorithm;
  readonly digest: string | null;
  /** Bare without options: in an object, Node 24 throws and catches two errors at each use. */
  readonly input: KeyObject | VerifyKeyObjectInput;
  /** RFC 7638, base64url. */
  readonly thumbprint: string;
  readonly kid: string | undefined;
  /** Not checked: only issuers with tenants look at it. */
  readonly issuer: unknown;
}

/** A public key for exactly one algorithm. Made only here. */
export type VerificationKey = Sealed<KeyFacts, 'VerificationKey'>;

const { seal, unseal } = sealing<KeyFacts, 'VerificationKey'>();

/** Throws a `TypeError` for anything but a `VerificationKey`. */
export const factsOf = unseal;

/** RFC 7518 §6.2.2, §6.3.2, §6.4: secret. createPublicKey would accept them. */
const SECRET_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'];

/** RFC 7638 §3.2, RFC 8037 §2: in this order. */
function requiredMembers({ crv, e, kty, n, x, y }: JsonObject): JsonObject {
  if (kty === 'RSA') return { e, kty, n };
  return kty === 'EC' ? { crv, kty, x, y } : { crv, kty, x };
}

function membersFor(algorithm: Algorithm, jwk: JsonObject): JsonObject | KeyReason {
  if (SECRET_MEMBERS.some((name) => jwk[name] !== undefined)) return 'private-member';

  const { kty, crv } = ALGORITHMS[algorithm];
  const members = requiredMembers(jwk);
  if (members.kty !== kty || members.crv !== crv) return 'key-type';

  const areText = Object.values(members).every((member) => typeof member === 'string');
  return areText ? members : 'encoding';
}

/**
 * A key's `alg` (RFC 7517 §4.4); else the first of `algorithms` that fits its type; else the first known
 * algorithm that does. `undefined` for an unknown type.
 */
function algorithmOf({ alg, kty, crv }: JsonObject, algorithms: readonly Algorithm[]) {
  if (alg !== undefined) return alg;

  const fitting = ALGORITHM_NAMES.filter((name) => {
    const { kty: type, crv: curve } = ALGORITHMS[name];
    return type === kty && (curve === undefined || curve === crv);
  });
  return algorithms.find((name) => fitting.includes(name)) ?? fitting[0];
}

/** Choice: a member that is `null` counts as absent. */
const withoutNulls = (jwk: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(jwk).filter(([, value]) => isPresent(value)));

export type ImportKey = (published: JsonObject) => VerificationKey | KeyReason;

/** For a key of the provider's set (RFC 7517 §4, RFC 7518 §6.2.1, §6.3.1, RFC 8037 §2). */
export function importSigningKey(
  published: JsonObject,
  algorithms: readonly Algorithm[] = ['RS256'],
): VerificationKey | KeyReason {
  const jwk = withoutNulls(published);
  const algorithm = algorithmOf(jwk, algorithms);
  if (algorithm === undefined) return 'key-type';
  if (!isOneOf(algorithms, algorithm)) return 'algorithm';

  const members = membersFor(algorithm, jwk);
  if (typeof members === 'string') return members;

  const { kid, use, key_ops: operations, issuer } = jwk;
  // RFC 7517 §4.5, §4.2, §4.3
  if (kid !== undefined && typeof kid !== 'string') return 'key-id';
  if (use !== undefined && use !== 'sig') return 'use';
  const mayVerify = isTextArray(operations) && operations.includes('verify');
  if (operations !== undefined && !mayVerify) return 'key-operations';

  const reason = checkLengths(members, MAX_SIGNING_BITS);
  return reason ?? importPublic(members, algorithm, MAX_SIGNING_BITS, kid, issuer);
}

/**
 * For the key of a proof (RFC 9449 §4.3(5), (7)). Stricter: no private member, even if it is `null`.
 * `imported` caches by algorithm + thumbprint.
 */
export function importProofKey(
  jwk: JsonObject,
  algorithm: Algorithm,
  imported: Cache<VerificationKey>,
): VerificationKey | KeyReason {
  const members = membersFor(algorithm, jwk);
  if (typeof members === 'string') return members;

  const key = imported.get(algorithm + thumbprintOf(members));
  const known = key ?? checkLengths(members, MAX_PROOF_BITS);
  return known ?? importPublic(members, algorithm, MAX_PROOF_BITS);
}

function importPublic(
  members: JsonObject,
  algorithm: Algorithm,
  maxBits: number,
  kid?: string,
  issuer?: unknown,
) {
  const { digest, options } = ALGORITHMS[algorithm];
  const thumbprint = thumbprintOf(members);
  try {
    const key = createPublicKey({ key: members, format: 'jwk' });
    // RFC 7518 §2, §6.2.1.2, RFC 8037 §2: only canonical text survives the round trip.
    const exported = requiredMembers({ ...key.export({ format: 'jwk' }) });
    if (thumbprintOf(exported) !== thumbprint) return 'encoding';

    const reason = members.kty === 'RSA' ? checkRsa(members, key, maxBits) : checkPoint(members);
    const input = options === undefined ? key : { key, ...options };
    return reason ?? seal({ algorithm, digest, input, thumbprint, kid, issuer });
  } catch (error) {
    if (isKeyError(error)) return 'not-importable';
    throw error;
  }
}

/** OpenSSL's errors have a code. */
const isKeyError = (error: unknown) => isError(error) && (codeOf(error) !== undefined || isBareError(error));

/** RFC 7638 §3. Valid members need no escapes, so JSON.stringify is canonical. */
const thumbprintOf = (members: JsonObject) => hash('sha256', JSON.stringify(members), 'base64url');

/**
 * RFC 7518 §6.3.1, RFC 8017 §3.1. Before Node reads the key: a longer one leaves an error of OpenSSL behind,
 * which Node 24 throws when it reads the next key. Time grows with the square of an exponent's length.
 */
function checkLengths({ kty, e, n }: JsonObject, maxBits: number) {
  if (kty !== 'RSA') return undefined;
  if (String(e).length > MAX_EXPONENT_LENGTH) return 'exponent';
  return String(n).length > Math.ceil(maxBits / BITS_OF_A_CHARACTER) ? 'size' : undefined;
}

function checkRsa({ n }: JsonObject, key: KeyObject, maxBits: number) {
  const { modulusLength = 0, publicExponent = 0n } = key.asymmetricKeyDetails ?? {};
  const lastByte = Buffer.from(String(n), 'base64url').at(-1) ?? 0;
  // RFC 7518 §3.3. No product of two odd primes is even (RFC 8017 §3.1).
  if (modulusLength < 2048 || modulusLength > maxBits || lastByte % 2 === 0) return 'size';

  // RFC 8017 §3.1: with 1, any text would be its own signature. Stricter: at most 32 bits, for speed.
  const isOdd = publicExponent % 2n === 1n;
  return isOdd && publicExponent > 1 && publicExponent <= MAX_EXPONENT ? undefined : 'exponent';
}

/** In base64url: the points of Ed25519 with the order 1, 2, 4 or 8 (RFC 8032 §5.1), in all encodings. */
const SMALL_ORDER = new RegExp(
  '^(?:A[AQ]A{39}[AI]A|7[Pfv]_{39}[3_]8' +
    '|JuiVj8KyJ7BFw_SJ8u-Y8NXfrAXTxjM5sTgCiG1T_[AI]U' +
    '|xxdqcD1N2E-6PAt2DRBnDyogU_osOczGTsf9d5KsA[3_]o)$',
);

/** RFC 8725 §3.4: in Node 20 and 22, anyone can sign for such a key. */
const checkPoint = ({ crv, x }: JsonObject) =>
  crv === 'Ed25519' && SMALL_ORDER.test(String(x)) ? 'size' : undefined;
