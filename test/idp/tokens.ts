/**
 * Signs tokens, valid and deliberately broken ones, in JWS compact serialization (RFC 7515 §7.1). Checks
 * nothing.
 */
import { constants, createHmac, sign, type KeyObject } from 'node:crypto';

/** The supported `alg` values (RFC 7518 §3.1, RFC 8037 §3.1). */
export type Algorithm =
  'RS256' | 'RS384' | 'RS512' | 'PS256' | 'ES256' | 'ES384' | 'ES512' | 'EdDSA' | 'HS256';

type Signer = (input: Buffer, key: KeyObject) => Buffer;

const rsa =
  (hash: string): Signer =>
  (input, key) =>
    sign(hash, input, key);

const ecdsa =
  (hash: string): Signer =>
  (input, key) =>
    sign(hash, input, { key, dsaEncoding: 'ieee-p1363' });

// RFC 7518 §3.5: the salt is as long as the hash.
const pss: Signer = (input, key) =>
  sign('sha256', input, {
    key,
    padding: constants.RSA_PKCS1_PSS_PADDING,
    saltLength: constants.RSA_PSS_SALTLEN_DIGEST,
  });

const signers: ReadonlyMap<unknown, Signer> = new Map<Algorithm, Signer>([
  ['RS256', rsa('sha256')],
  ['RS384', rsa('sha384')],
  ['RS512', rsa('sha512')],
  ['PS256', pss],
  ['ES256', ecdsa('sha256')],
  ['ES384', ecdsa('sha384')],
  ['ES512', ecdsa('sha512')],
  ['EdDSA', (input, key) => sign(null, input, key)],
  ['HS256', (input, key) => createHmac('sha256', key).update(input).digest()],
]);

/**
 * A compact JWS over the two values as JSON. `undefined` members are left out. `key` is a private key, or a
 * secret key for `HS256`. `algorithm` signs; the default is the header's `alg`.
 */
export function signJws(header: unknown, payload: unknown, key: KeyObject, algorithm?: Algorithm): string {
  const name = algorithm ?? (header as { alg?: unknown } | null)?.alg;
  const signer = signers.get(name);
  if (signer === undefined) throw new Error(`no signer for alg ${JSON.stringify(name)}: name one explicitly`);
  return rawJws(JSON.stringify(header), JSON.stringify(payload), (input) => signer(input, key));
}

/**
 * A compact JWS over exactly these texts or bytes. `makeSignature` gets the signing input (RFC 7515 §5.1) and
 * returns the bytes of the signature; an empty buffer gives an empty third part.
 */
export function rawJws(
  header: string | Buffer,
  payload: string | Buffer,
  makeSignature: (input: Buffer) => Buffer,
): string {
  const input = `${encode(header)}.${encode(payload)}`;
  return `${input}.${encode(makeSignature(Buffer.from(input)))}`;
}

function encode(part: string | Buffer): string {
  return (typeof part === 'string' ? Buffer.from(part) : part).toString('base64url');
}
