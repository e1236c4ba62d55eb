// How this API authenticates at an introspection endpoint: with a secret, or with an assertion that it signs.
// Promises: secret, key and assertion appear in no message.
import {
  constants,
  createPrivateKey,
  randomBytes,
  sign,
  type KeyObject,
  type SignKeyObjectInput,
} from 'node:crypto';
import { codeOf, isError } from '../../verify/base/encoding.ts';
import type { Clock } from '../../verify/base/clock.ts';
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
  readonly alg: string;
  readonly digest: string | null;
  readonly input: KeyObject | SignKeyObjectInput;
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

/** RFC 7518 §3.4, §3.5, RFC 8037 §3.1. `undefined` for any other kind of key. */
function describeKey(key: KeyObject): SigningKey | undefined {
  const { modulusLength = 0, namedCurve } = key.asymmetricKeyDetails ?? {};
  const { asymmetricKeyType: type } = key;
  if (type === 'ed25519') return { alg: 'EdDSA', digest: null, input: key };

  if (type === 'rsa' && modulusLength >= LEAST_BITS) {
    const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 };
    return { alg: 'PS256', digest: 'sha256', input: { key, ...pss } };
  }

  const input = { key, dsaEncoding: 'ieee-p1363' } as const;
  if (namedCurve === 'prime256v1') return { alg: 'ES256', digest: 'sha256', input };
  return namedCurve === 'secp384r1' ? { alg: 'ES384', digest: 'sha384', input } : undefined;
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
  { alg, digest, input }: SigningKey,
  clock: Clock,
): Authenticate {
  const header = { alg, kid: keyId };

  return function authenticate() {
    const exp = Math.floor(clock.now() / 1000) + ASSERTION_SECONDS;
    const jti = randomBytes(16).toString('base64url');
    const claims = { iss: clientId, sub: clientId, aud: issuer, jti, exp };
    const text = [header, claims].map(encode).join('.');

    const signature = sign(digest, Buffer.from(text), input).toString('base64url');
    const form = { client_assertion_type: ASSERTION_TYPE, client_assertion: `${text}.${signature}` };
    return { headers: {}, form };
  };
}

const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
