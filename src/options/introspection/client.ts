// How this API authenticates at an introspection endpoint: with a secret, or with an assertion that it signs.
// Promises: secret, key and assertion appear in no message.
import { createPrivateKey, randomBytes, sign, type KeyObject } from 'node:crypto';
import { codeOf, isError } from '../../verify/base/encoding.ts';
import type { Clock } from '../../verify/base/clock.ts';
import { ALGORITHMS, type Algorithm } from '../../verify/keys/jwk.ts';
import type { Understand } from '../key-access.ts';

/** What an introspection request has besides the token. */
export interface Credentials {
  readonly headers: Readonly<Record<string, string>>;
  readonly form: Readonly<Record<string, string>>;
}

/** Called for each introspection request. */
export type Authenticate = () => Credentials;

/** RFC 6749 §2.3.1, RFC 7617 §2 */
export function createBasic(clientId: string, clientSecret: string): Authenticate {
  const pair = `${formEncoded(clientId)}:${formEncoded(clientSecret)}`;
  const credentials = Buffer.from(pair).toString('base64');
  return () => ({ headers: { Authorization: `Basic ${credentials}` }, form: {} });
}

/** RFC 6749, appendix B */
function formEncoded(text: string) {
  const form = new URLSearchParams([['', text]]);
  return String(form).slice(1);
}

export interface SigningKey {
  readonly alg: Algorithm;
  readonly key: KeyObject;
}

const LEAST_BITS = 2048;

/** PKCS #8 without passphrase (RFC 5958, RFC 7468 §10), and nothing else. */
const PEM = /^\s*-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----\s*$/;

export const signingKeyIn: Understand<SigningKey> = (content) => {
  if (!PEM.test(content)) return undefined;

  try {
    return describeKey(createPrivateKey(content));
  } catch (error) {
    // OpenSSL's errors have a code.
    if (isError(error) && codeOf(error) !== undefined) return undefined;
    throw error;
  }
};

/** `undefined` for a kind of key that no algorithm here is for. */
function describeKey(key: KeyObject): SigningKey | undefined {
  const { modulusLength = 0, namedCurve } = key.asymmetricKeyDetails ?? {};
  const { asymmetricKeyType: type } = key;
  if (type === 'ed25519') return { alg: 'EdDSA', key };
  if (type === 'rsa' && modulusLength >= LEAST_BITS) return { alg: 'PS256', key };
  if (namedCurve === 'prime256v1') return { alg: 'ES256', key };
  return namedCurve === 'secp384r1' ? { alg: 'ES384', key } : undefined;
}

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
const ASSERTION_SECONDS = 60;

interface AssertionOptions {
  readonly clientId: string;
  readonly issuer: string;
  readonly keyId: string | undefined;
}

/** RFC 7523 §2.2, §3. The audience is the issuer alone, so that no other server can use the assertion. */
export function createAssertion(
  { clientId, issuer, keyId }: AssertionOptions,
  { alg, key }: SigningKey,
  clock: Clock,
): Authenticate {
  const header = { alg, kid: keyId };

  return function authenticate() {
    const exp = Math.floor(clock.now() / 1000) + ASSERTION_SECONDS;
    const jti = randomBytes(16).toString('base64url');
    const claims = { iss: clientId, sub: clientId, aud: issuer, jti, exp };
    const assertion = signJws(header, claims, key);
    return { headers: {}, form: { client_assertion_type: ASSERTION_TYPE, client_assertion: assertion } };
  };
}

/** RFC 7515 §3.1 */
export function signJws(header: { readonly alg: Algorithm }, payload: object, key: KeyObject): string {
  const text = [header, payload].map(encode).join('.');
  const { digest, options } = ALGORITHMS[header.alg];
  const signature = sign(digest, Buffer.from(text), { key, ...options });
  return `${text}.${signature.toString('base64url')}`;
}

const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
