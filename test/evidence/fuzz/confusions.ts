/* What can be confused when there are six algorithms: a public key taken for a secret, a signature in another
   encoding, a key used under another name. */
import { createHmac, createPublicKey, sign, type KeyObject } from 'node:crypto';
import type { Algorithm } from '../../../src/verify/keys/jwk.ts';
import type { UsableKey } from './deployments.ts';
import { ORDERS, signingKeys, type Signer } from './keys.ts';
import type { Random } from './random.ts';

/** Every text and byte form in which a public key is commonly published. */
function encodingsOf({ pem, pair }: UsableKey): readonly (string | Buffer)[] {
  const key = createPublicKey(pem);
  const { n = '', x = '', y = '' } = pair.jwk as Record<string, string>;
  const der = key.export({ type: 'spki', format: 'der' });
  const [first, second] = [n === '' ? x : n, y].map((text) => Buffer.from(text, 'base64url'));
  const point = Buffer.concat([Buffer.from([4]), first!, second!]);
  return [
    pem,
    pem.trim(),
    pem.replaceAll('\n', '\r\n'),
    pem.replaceAll(/-.*-|\n/g, ''),
    der,
    der.toString('base64'),
    der.toString('hex'),
    JSON.stringify(pair.jwk),
    JSON.stringify(key.export({ format: 'jwk' })),
    n === '' ? x : n,
    first!,
    point,
    point.toString('hex'),
    ...(n === ''
      ? []
      : [key.export({ type: 'pkcs1', format: 'pem' }), key.export({ type: 'pkcs1', format: 'der' })]),
  ];
}

const DIGESTS: Readonly<Record<string, string>> = { HS256: 'sha256', HS384: 'sha384', HS512: 'sha512' };

/** A MAC under a secret that everybody knows: the public key, or nothing. */
export function publicSecret(random: Random, key: UsableKey): { alg: string; signer: Signer } {
  const alg = random.pick(Object.keys(DIGESTS));
  const secret = random.chance(0.1) ? '' : random.pick(encodingsOf(key));
  return { alg, signer: (input) => createHmac(DIGESTS[alg]!, secret).update(input).digest() };
}

const toBytes = (value: bigint, length: number) =>
  Buffer.from(value.toString(16).padStart(length * 2, '0'), 'hex');

const integer = (bytes: Buffer) => BigInt(`0x${bytes.toString('hex') || '0'}`);

/** An INTEGER of ASN.1 (X.690 §8.3). */
function derInteger(bytes: Buffer): Buffer {
  const start = bytes.findIndex((byte) => byte !== 0);
  const short = start === -1 ? Buffer.alloc(1) : bytes.subarray(start);
  const body = short[0]! >= 0x80 ? Buffer.concat([Buffer.alloc(1), short]) : short;
  return Buffer.concat([Buffer.from([2, body.length]), body]);
}

function toDer(signature: Buffer): Buffer {
  const half = signature.length / 2;
  const body = Buffer.concat([signature.subarray(0, half), signature.subarray(half)].map(derInteger));
  const length = body.length < 0x80 ? [body.length] : [0x81, body.length];
  return Buffer.concat([Buffer.from([0x30, ...length]), body]);
}

type Change = (signature: Buffer) => Buffer;

/** Changes that keep the two integers, or almost. */
function ecdsaChanges(algorithm: Algorithm): readonly Change[] {
  const { order, bytes } = ORDERS[algorithm]!;
  const halves = (signature: Buffer) => [signature.subarray(0, bytes), signature.subarray(bytes)] as const;
  const join = (r: Buffer, s: Buffer) => Buffer.concat([r, s]);
  const padded = (part: Buffer, count: number) => Buffer.concat([Buffer.alloc(count), part]);

  return [
    toDer,
    (signature) => Buffer.from(toDer(signature).toString('hex')),
    (signature) => join(...(halves(signature).toReversed() as [Buffer, Buffer])),
    (signature) => join(halves(signature)[0], toBytes(order - integer(halves(signature)[1]), bytes)),
    (signature) => join(padded(halves(signature)[0], 1), padded(halves(signature)[1], 1)),
    (signature) => join(padded(halves(signature)[0], 16), padded(halves(signature)[1], 16)),
    (signature) => join(halves(signature)[0].subarray(1), halves(signature)[1].subarray(1)),
    (signature) => join(toBytes(0n, bytes), halves(signature)[1]),
    (signature) => join(halves(signature)[0], toBytes(0n, bytes)),
    () => join(toBytes(order, bytes), toBytes(order, bytes)),
    () => join(toBytes(1n, bytes), toBytes(1n, bytes)),
    () => join(toBytes(order - 1n, bytes), toBytes(order - 1n, bytes)),
    (signature) => join(toBytes(integer(halves(signature)[0]) + order, bytes + 1), halves(signature)[1]),
    (signature) => signature.subarray(0, bytes),
  ];
}

/** The order of the group of Ed25519 (RFC 8032 §5.1). */
const L = 2n ** 252n + 27742317777372353535851937790883648493n;

const reversed = (bytes: Buffer) => Buffer.from(bytes).reverse();

const ED25519_CHANGES: readonly Change[] = [
  // RFC 8032 §5.1.7: S is below the order, or there would be a second signature.
  (signature) =>
    Buffer.concat([
      signature.subarray(0, 32),
      reversed(toBytes(integer(reversed(signature.subarray(32))) + L, 32)),
    ]),
  (signature) => Buffer.concat([signature.subarray(32), signature.subarray(0, 32)]),
  (signature) => Buffer.concat([signature.subarray(0, 32), Buffer.alloc(32)]),
  (signature) => Buffer.concat([signature, Buffer.alloc(50)]),
  reversed,
];

const COMMON_CHANGES: readonly Change[] = [
  (signature) => Buffer.concat([Buffer.alloc(1), signature]),
  (signature) => Buffer.concat([signature, Buffer.alloc(1)]),
  (signature) => signature.subarray(1),
  (signature) => signature.subarray(0, -1),
  (signature) => Buffer.concat([signature, signature]),
  (signature) => Buffer.alloc(signature.length),
  (signature) => Buffer.alloc(signature.length, 0xff),
  () => Buffer.alloc(0),
  (signature) => Buffer.from(signature.toString('base64')),
  (signature) => Buffer.from(signature.toString('hex')),
];

/** A signature of this algorithm in another encoding, of another length, or of other integers. */
export function transcoded(random: Random, algorithm: Algorithm, signature: Buffer): Buffer {
  const own = algorithm.startsWith('ES') ? ecdsaChanges(algorithm) : [];
  const changes = [...own, ...(algorithm === 'EdDSA' ? ED25519_CHANGES : []), ...COMMON_CHANGES];
  return random.pick(random.chance(0.6) ? changes : changes.slice(0, 4))(signature);
}

const DIGEST_NAMES = ['sha1', 'sha256', 'sha384', 'sha512'];

/**
 * Signs with the private key of one algorithm as if it were for another: with another padding, digest, salt
 * or encoding.
 */
export function otherUse(random: Random, { pair }: UsableKey): Signer {
  const key: KeyObject = pair.privateKey;
  const digest = pair === signingKeys.ed25519 ? null : random.pick(DIGEST_NAMES);
  const isRsa = key.asymmetricKeyType === 'rsa';
  // Without a salt, a signature is the same each time.
  const options = isRsa && random.chance(0.4) ? { padding: 6, saltLength: 0 } : {};
  if (isRsa) return (input) => sign(digest, input, { key, ...options });

  return random.pick(Object.values(signingKeys)).sign;
}
