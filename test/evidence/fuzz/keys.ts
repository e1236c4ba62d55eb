/* Fixed keys and signers that give the same signature for the same text, so that a case can be repeated to
   the byte. The signatures are sound, but a fixed nonce gives the key away: nothing here is of use outside a
   test. */
import {
  constants,
  createHash,
  createPrivateKey,
  createPublicKey,
  privateEncrypt,
  sign,
  type JsonWebKey,
  type KeyObject,
} from 'node:crypto';
import { readFileSync } from 'node:fs';

export type Members = Record<string, unknown>;
export type Signer = (input: Buffer) => Buffer;

export interface Client {
  readonly alg: string;
  readonly jwk: Members;
  readonly sign: Signer;
}

const pooled = (number: number) =>
  createPrivateKey(readFileSync(new URL(`../../idp/keys-pool/${number}.pem`, import.meta.url)));

export const rsaKey = pooled(1);
export const foreignKey = pooled(2);

export const publicJwk = (key: KeyObject): JsonWebKey => createPublicKey(key).export({ format: 'jwk' });

export const privateJwk = (key: KeyObject): JsonWebKey => key.export({ format: 'jwk' });

const sha256 = (...parts: readonly Buffer[]) => createHash('sha256').update(Buffer.concat(parts)).digest();

export const signRs256 =
  (key: KeyObject): Signer =>
  (input) =>
    sign('sha256', input, key);

/**
 * EMSA-PSS (RFC 8017 §9.1.1) for 2048 bits with a salt of 32 zero bytes; node:crypto would take a random one.
 */
export function signPs256(key: KeyObject): Signer {
  return (input) => {
    const salt = Buffer.alloc(32);
    const seed = sha256(Buffer.alloc(8), sha256(input), salt);
    const block = Buffer.concat([Buffer.alloc(190), Buffer.from([1]), salt]);
    const mask = Buffer.concat(
      [0, 1, 2, 3, 4, 5, 6].map((counter) => sha256(seed, Buffer.from([0, 0, 0, counter]))),
    );
    const masked = block.map((byte, index) => byte ^ mask[index]!);
    masked[0]! &= 0x7f;
    return decryptBare(key, Buffer.concat([masked, seed, Buffer.from([0xbc])]));
  };
}

/** RSADP (RFC 8017 §5.1.2). Deno has no `RSA_NO_PADDING`. */
function decryptBare(key: KeyObject, block: Buffer): Buffer {
  if (!('Deno' in globalThis)) return privateEncrypt({ key, padding: constants.RSA_NO_PADDING }, block);

  const { n = '', d = '' } = privateJwk(key);
  const modulus = integer(Buffer.from(n, 'base64url'));
  const exponent = integer(Buffer.from(d, 'base64url'));
  let power = 1n;
  for (const bit of exponent.toString(2)) {
    power = (power * power) % modulus;
    if (bit === '1') power = (power * integer(block)) % modulus;
  }
  return toBytes(power, block.length);
}

interface Curve {
  /** In DER (SEC 2 §A.2). */
  readonly oid: string;
  readonly crv: string;
  readonly bytes: number;
  readonly digest: string;
  readonly order: bigint;
}

const CURVES: Readonly<Record<string, Curve>> = {
  ES256: {
    oid: '2a8648ce3d030107',
    crv: 'P-256',
    bytes: 32,
    digest: 'sha256',
    order: 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n,
  },
  ES384: {
    oid: '2b81040022',
    crv: 'P-384',
    bytes: 48,
    digest: 'sha384',
    order:
      0xffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973n,
  },
  ES512: {
    oid: '2b81040023',
    crv: 'P-521',
    bytes: 66,
    digest: 'sha512',
    // SEC 2 §2.6.1
    order: 2n ** 521n - 0x5ae79787c40d069948033feb708f65a2fc44a36477663b851449048e16ec79bf7n,
  },
};

const integer = (bytes: Buffer) => BigInt(`0x${bytes.toString('hex')}`);

const toBytes = (value: bigint, length: number) =>
  Buffer.from(value.toString(16).padStart(length * 2, '0'), 'hex');

/** Modular inverse by the extended Euclidean algorithm. */
function inverse(value: bigint, modulus: bigint): bigint {
  let a = value;
  let b = modulus;
  let x = 1n;
  let y = 0n;
  while (b !== 0n) [a, b, x, y] = [b, a % b, y, x - (a / b) * y];
  return ((x % modulus) + modulus) % modulus;
}

/** A DER element of at most 255 bytes (X.690 §8.1). */
function element(tag: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  const long = content.length < 128 ? [] : [0x81];
  return Buffer.concat([Buffer.from([tag, ...long, content.length]), content]);
}

const EC_PUBLIC_KEY = element(6, Buffer.from('2a8648ce3d0201', 'hex'));

/** From the number alone (RFC 5958 §2, RFC 5915 §3): Deno has no `createECDH` for P-521. */
function privateKeyOf({ bytes, oid }: Curve, secret: bigint): KeyObject {
  const ecKey = element(0x30, element(2, Buffer.from([1])), element(4, toBytes(secret, bytes)));
  const algorithm = element(0x30, EC_PUBLIC_KEY, element(6, Buffer.from(oid, 'hex')));
  const key = element(0x30, element(2, Buffer.from([0])), algorithm, element(4, ecKey));
  return createPrivateKey({ key, format: 'der', type: 'pkcs8' });
}

/** The public point of a private number. */
function pointOf(curve: Curve, secret: bigint): { x: Buffer; y: Buffer } {
  const { x = '', y = '' } = createPublicKey(privateKeyOf(curve, secret)).export({ format: 'jwk' });
  return { x: Buffer.from(x, 'base64url'), y: Buffer.from(y, 'base64url') };
}

function ecClient(alg: string, secret: bigint): Client {
  const curve = CURVES[alg]!;
  const { x, y } = pointOf(curve, secret);
  const nonce = 0xfedcba9876543210n;
  const r = integer(pointOf(curve, nonce).x) % curve.order;
  const inverted = inverse(nonce, curve.order);

  const signer: Signer = (input) => {
    const z = integer(createHash(curve.digest).update(input).digest());
    const s = (inverted * (z + r * secret)) % curve.order;
    return Buffer.concat([toBytes(r, curve.bytes), toBytes(s, curve.bytes)]);
  };

  return {
    alg,
    jwk: { kty: 'EC', crv: curve.crv, x: x.toString('base64url'), y: y.toString('base64url') },
    sign: signer,
  };
}

function edKey(fill: number): KeyObject {
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), Buffer.alloc(32, fill)]);
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
}

function edClient(fill: number): Client {
  const key = edKey(fill);
  return { alg: 'EdDSA', jwk: { ...publicJwk(key) }, sign: (input) => sign(null, input, key) };
}

/** The members of a public key of each type (RFC 7518 §6, RFC 8037 §2). */
export const OWN_MEMBERS: Readonly<Record<string, readonly string[]>> = {
  RSA: ['n', 'e'],
  EC: ['crv', 'x', 'y'],
  OKP: ['crv', 'x'],
};

/** The orders of the curves, and how long an integer of a signature is. */
export const ORDERS: Readonly<Record<string, { readonly order: bigint; readonly bytes: number }>> = CURVES;

/** A key of an issuer, and how it signs. `algorithms` are those that its type supports. */
export interface SigningPair {
  readonly algorithms: readonly string[];
  readonly jwk: Members;
  readonly privateKey: KeyObject;
  readonly sign: Signer;
}

function rsaPair(key: KeyObject, isPss: boolean): SigningPair {
  const sign = isPss ? signPs256(key) : signRs256(key);
  return { algorithms: ['RS256', 'PS256'], jwk: { ...publicJwk(key) }, privateKey: key, sign };
}

function ecPair(alg: string, secret: bigint): SigningPair {
  const { jwk, sign } = ecClient(alg, secret);
  const d = toBytes(secret, CURVES[alg]!.bytes).toString('base64url');
  const privateKey = createPrivateKey({ key: { ...jwk, d } as JsonWebKey, format: 'jwk' });
  return { algorithms: [alg], jwk, privateKey, sign };
}

function edPair(fill: number): SigningPair {
  const key = edKey(fill);
  const { jwk, sign } = edClient(fill);
  return { algorithms: ['EdDSA'], jwk, privateKey: key, sign };
}

export const signingKeys = {
  rsa: rsaPair(rsaKey, false),
  pss: rsaPair(pooled(3), true),
  p256: ecPair('ES256', 0x1f2e3d4c5b6a7988n),
  otherP256: ecPair('ES256', 0x8897a6b5c4d3e2f1n),
  p384: ecPair('ES384', 0x123456789n),
  p521: ecPair('ES512', 0x987654321n),
  ed25519: edPair(21),
} as const;

/** The clients that make proofs; the cheap ones come more often. */
export const CLIENTS: readonly Client[] = [
  ecClient('ES256', 0x1234567890abcdefn),
  ecClient('ES256', 0xabcdef1234567890n),
  edClient(7),
  edClient(8),
  ecClient('ES256', 0x77n),
  edClient(9),
  ecClient('ES384', 0x55n),
  ecClient('ES512', 0x99n),
  { alg: 'RS256', jwk: { ...publicJwk(foreignKey) }, sign: signRs256(foreignKey) },
  { alg: 'PS256', jwk: { ...publicJwk(foreignKey) }, sign: signPs256(foreignKey) },
];
