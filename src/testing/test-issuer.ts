// A test issuer: a signing key, tokens and proofs, for tests without a network. Only testing.ts loads it.
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  hash,
  randomUUID,
  type KeyObject,
} from 'node:crypto';
import type { LogPart } from '../gate/options.ts';
import { signJws } from '../options/introspection/client.ts';
import { jsonLog } from '../options/log.ts';
import type { JsonObject } from '../verify/base/encoding.ts';
import { oneOf, readPlainOptions, text, type Given, type RulesOf } from '../verify/base/option.ts';
import type { Algorithm } from '../verify/keys/jwk.ts';

/** Adds to or replaces the usual claims. `undefined` removes one. */
export type Members = JsonObject;

/** A key pair for DPoP proofs (RFC 9449), for ES256. */
export interface ProofKey {
  /** RFC 7638, base64url: the `cnf.jkt` of a bound token. */
  readonly thumbprint: string;
  /** RFC 7517: the `jwk` in the header of a proof. */
  readonly publicJwk: JsonObject;
  /** Signs proofs. */
  readonly privateKey: KeyObject;
}

/** The request that a proof is for. */
export interface ProofRequest {
  /** The claim `htm`. */
  readonly method: string;
  /** The claim `htu`, which has no query. */
  readonly url: string;
}

interface Values {
  /** The host name of the issuer. Default: `issuer.test`. */
  readonly domain: string;
  /** The `aud` of its tokens. Default: `https://api.test`. */
  readonly audience: string;
  /** The signature algorithm of its tokens. Default: `RS256`. */
  readonly algorithm: TestAlgorithm;
}

/** The options of `createTestIssuer`. */
export interface TestIssuerOptions extends Given<Values> {}

const AS_TEXT = {
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
} as const;

/** PEM texts. Versions of @types/node differ in what they call them. */
type KeyPair = Readonly<Record<'publicKey' | 'privateKey', unknown>>;

const makeRsa = () => generateKeyPairSync('rsa', { modulusLength: 2048, ...AS_TEXT });

const makeEc = (namedCurve: string) => () => generateKeyPairSync('ec', { namedCurve, ...AS_TEXT });

const makeEd25519 = () => generateKeyPairSync('ed25519', AS_TEXT);

const MAKERS: Readonly<Record<TestAlgorithm, () => KeyPair>> = {
  RS256: makeRsa,
  PS256: makeRsa,
  ES256: makeEc('P-256'),
  ES384: makeEc('P-384'),
  ES512: makeEc('P-521'),
  EdDSA: makeEd25519,
};

/** The signature algorithms of a test issuer. */
export type TestAlgorithm = Algorithm;

const RULES: RulesOf<Values> = {
  domain: text,
  audience: text,
  algorithm: oneOf(...Object.keys(MAKERS)),
};

const DEFAULTS: Values = { domain: 'issuer.test', audience: 'https://api.test', algorithm: 'RS256' };

/** Options that replace the provider with the test issuer. */
export interface TestOptions {
  readonly domain: string;
  /** Overrides any `issuer` of options that these are spread over: the default applies. */
  readonly issuer: undefined;
  readonly audience: string;
  readonly algorithms: readonly TestAlgorithm[];
  readonly fetchKeys: () => Promise<{ readonly keys: readonly JsonObject[] }>;
  /** For the part `introspection`: reports only tokens of this issuer as active. */
  readonly introspect: (token: string) => Promise<JsonObject>;
  /** Only errors are logged. */
  readonly log: LogPart;
}

/** An issuer that `createTestIssuer` has made. */
export interface TestIssuer {
  /** To spread into the options of `createService` and `createGate`. */
  readonly options: TestOptions;
  /** Creates a token that expires in five minutes. */
  readonly token: (claims?: Members) => string;
  /** Creates an opaque token, for the part `introspection`. */
  readonly opaqueToken: (claims?: Members) => string;
  /** Creates a token bound to a key (RFC 9449 §6.1). */
  readonly boundToken: (key: ProofKey, claims?: Members) => string;
  /** Creates an `authorization` header with a Bearer token. */
  readonly bearer: (claims?: Members) => { authorization: string };
  /** The same as `createProof`. */
  readonly proof: typeof createProof;
}

const nowSeconds = () => Math.floor(Date.now() / 1000);

/**
 * Creates an issuer with its own signing key. Throws a `TypeError` for an option that is wrong.
 *
 * @example
 * const issuer = createTestIssuer();
 * const service = createService({ routes }, { ...issuer.options, port: 0 });
 * const url = await service.listen();
 * const response = await fetch(`${url}/api/orders`, { headers: issuer.bearer({ scope: 'read:orders' }) });
 */
export function createTestIssuer(options: TestIssuerOptions = {}): TestIssuer {
  return new SigningIssuer(readPlainOptions<Values>(options, RULES, DEFAULTS, 'createTestIssuer'));
}

class SigningIssuer implements TestIssuer {
  readonly #key;
  readonly #header;
  readonly #usual;
  /** Of opaque tokens. */
  readonly #claimsOf = new Map<string, Members>();
  readonly options: TestOptions;
  readonly proof = createProof;

  constructor({ domain, audience, algorithm }: Values) {
    const { privateKey, jwk } = createKeys(algorithm);
    this.#key = privateKey;
    this.#header = { alg: algorithm, typ: 'at+jwt', kid: jwk.kid };
    this.#usual = { iss: `https://${domain}/`, aud: audience, sub: 'test-user' };
    const fetchKeys = async () => ({ keys: [jwk] });
    const sources = { fetchKeys, introspect: this.#introspect, log: jsonLog({ level: 'error' }) };
    this.options = { domain, issuer: undefined, audience, algorithms: [algorithm], ...sources };
  }

  readonly token = (claims?: Members) =>
    signJws(this.#header, expiring({ ...this.#usual, ...claims }), this.#key);

  readonly opaqueToken = (claims?: Members) => {
    const token = randomUUID();
    this.#claimsOf.set(token, expiring({ ...this.#usual, ...claims }));
    return token;
  };

  readonly boundToken = (key: ProofKey, claims?: Members) =>
    this.token({ cnf: { jkt: key.thumbprint }, ...claims });

  readonly bearer = (claims?: Members) => ({ authorization: `Bearer ${this.token(claims)}` });

  /** A JWT is asked about once it is verified, so that it is one of its own. */
  readonly #introspect = async (token: string): Promise<JsonObject> => {
    const claims = this.#claimsOf.get(token);
    const response = { active: claims !== undefined || token.includes('.'), ...claims };
    // A copy, as an endpoint would send: verified claims are frozen.
    return JSON.parse(JSON.stringify(response));
  };
}

const expiring = (claims: Members): Members => ({ exp: nowSeconds() + 300, ...claims });

/**
 * Creates a key for `boundToken` and `proof`.
 *
 * @example const key = createProofKey();
 */
export function createProofKey(): ProofKey {
  const { privateKey, jwk } = createKeys('ES256');
  const { crv, kty, x, y } = jwk;
  // RFC 7638 §3.2: only the required members, in this order.
  const members = { crv, kty, x, y };
  const thumbprint = hash('sha256', JSON.stringify(members), 'base64url');
  return { thumbprint, publicJwk: members, privateKey };
}

/** Node 20 hangs if it exports a generated key while the generator is garbage-collected. */
function createKeys(algorithm: TestAlgorithm) {
  const { publicKey, privateKey } = MAKERS[algorithm]();
  const publicJwk = createPublicKey(String(publicKey)).export({ format: 'jwk' });
  const jwk = { ...publicJwk, kid: randomUUID(), use: 'sig', alg: algorithm };
  return { privateKey: createPrivateKey(String(privateKey)), jwk };
}

/**
 * Creates a proof for a request with this token (RFC 9449 §4.2), issued now. `claims`, such as `nonce`, add
 * to or replace the usual ones. Throws a `TypeError` for a request without `url`, and for a member other than
 * `method` and `url`.
 *
 * @example const dpop = createProof(key, { method: 'GET', url }, issuer.boundToken(key));
 */
export function createProof(
  key: ProofKey,
  request: ProofRequest,
  token: string,
  claims: Members = {},
): string {
  const { method, url, ...others }: ProofRequest = Object(request);
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw new TypeError(`${unknown} is a claim: pass it after the token`);

  if (typeof url !== 'string') throw new TypeError('createProof needs a request whose url is text');

  const htu = url.replace(/[?#][^]*/, '');
  const ath = hash('sha256', token, 'base64url');
  const usual = { jti: randomUUID(), htm: method, htu, iat: nowSeconds(), ath };
  const header = { typ: 'dpop+jwt', alg: 'ES256' as const, jwk: key.publicJwk };
  return signJws(header, { ...usual, ...claims }, key.privateKey);
}
