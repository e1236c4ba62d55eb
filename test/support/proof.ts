/* Makes DPoP proofs (RFC 9449 §4.2), valid ones and ones with one change. Shares no code with src. */
import {
  constants,
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomUUID,
  sign,
  type KeyObject,
} from 'node:crypto';
import { makeSigningKey } from '../idp/keys.ts';
import { rawJws } from '../idp/tokens.ts';

export type Members = Record<string, unknown>;

const ecdsa = (digest: string) => (input: Buffer, key: KeyObject) =>
  sign(digest, input, { key, dsaEncoding: 'ieee-p1363' });

const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 };

/** How each algorithm signs (RFC 7518 §3.1, RFC 8037 §3.1). */
const SIGNERS = {
  ES256: ecdsa('sha256'),
  ES384: ecdsa('sha384'),
  ES512: ecdsa('sha512'),
  EdDSA: (input: Buffer, key: KeyObject) => sign(null, input, key),
  PS256: (input: Buffer, key: KeyObject) => sign('sha256', input, { key, ...pss }),
  RS256: (input: Buffer, key: KeyObject) => sign('sha256', input, key),
};

export type ProofAlgorithm = keyof typeof SIGNERS;
export const PROOF_ALGORITHMS = Object.keys(SIGNERS) as ProofAlgorithm[];

/** A client's key. `jwk` has only its public members. */
export interface ProofKey {
  readonly alg: ProofAlgorithm;
  readonly privateKey: KeyObject;
  readonly jwk: Readonly<Members>;
  /** RFC 7638 */
  readonly thumbprint: string;
}

const CURVES = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' } as const;

const AS_TEXT = {
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
} as const;

/**
 * As text: about once in ten thousand times, Node 20 hangs when a key is exported while its generator is
 * collected.
 */
function generate(alg: ProofAlgorithm): KeyObject {
  if (alg === 'PS256' || alg === 'RS256') return makeSigningKey().privateKey;

  const { privateKey } =
    alg === 'EdDSA'
      ? generateKeyPairSync('ed25519', AS_TEXT)
      : generateKeyPairSync('ec', { namedCurve: CURVES[alg], ...AS_TEXT });
  return createPrivateKey(String(privateKey));
}

/** A new key. */
export function makeProofKey(alg: ProofAlgorithm = 'ES256', privateKey = generate(alg)): ProofKey {
  const jwk = { ...createPublicKey(privateKey).export({ format: 'jwk' }) };
  return { alg, privateKey, jwk, thumbprint: thumbprintOf(jwk) };
}

/** RFC 7638 §3.2, RFC 8037 §2: the required members in alphabetical order. */
export function thumbprintOf(jwk: Readonly<Members>): string {
  const names = Object.keys(jwk)
    .filter((name) => ['crv', 'e', 'kty', 'n', 'x', 'y'].includes(name))
    .sort();
  return hashOf(JSON.stringify(Object.fromEntries(names.map((name) => [name, jwk[name]]))));
}

/** The base64url of the SHA-256 of an ASCII text, as in `ath` (RFC 9449 §4.2). */
export const hashOf = (text: string) => createHash('sha256').update(text, 'ascii').digest('base64url');

/** The nonce of every replica with this secret at this time. */
export function nonceAt(secret: string, nowMillis: number): string {
  const text = `gatehouse DPoP nonce ${Math.floor(nowMillis / 60_000)}`;
  return createHmac('sha256', secret).update(text).digest('base64url');
}

/** The subject of a valid proof. `nowSeconds` becomes its `iat`. */
export interface Subject {
  readonly token: string;
  readonly uri: string;
  readonly nowSeconds: number;
  readonly method?: string;
  readonly nonce?: unknown;
}

/** A proof before it is signed: change what should be wrong. */
export interface ProofDraft {
  readonly header: Members;
  readonly claims: Members;
  /** Replaces the JSON of the header or of the claims. */
  headerText?: string | Buffer;
  payloadText?: string | Buffer;
  /** Signs with its own algorithm, whatever the header says. */
  signer: ProofKey;
  /** Changes the signature. */
  alter: (signature: Buffer) => Buffer;
  /** Changes the finished proof. */
  finish: (proof: string) => string;
}

const same = <Value>(value: Value) => value;

/** A draft of a valid proof. Members that are `undefined` are left out. */
export function draftProof(
  key: ProofKey,
  { token, uri, nowSeconds, method = 'GET', nonce }: Subject,
): ProofDraft {
  return {
    header: { typ: 'dpop+jwt', alg: key.alg, jwk: { ...key.jwk } },
    claims: { jti: randomUUID(), htm: method, htu: uri, iat: nowSeconds, ath: hashOf(token), nonce },
    signer: key,
    alter: same,
    finish: same,
  };
}

export function sealProof({
  header,
  claims,
  headerText,
  payloadText,
  signer,
  alter,
  finish,
}: ProofDraft): string {
  const texts = [headerText ?? JSON.stringify(header), payloadText ?? JSON.stringify(claims)] as const;
  return finish(rawJws(...texts, (input) => alter(SIGNERS[signer.alg](input, signer.privateKey))));
}

/** A valid proof except for these members. */
export function makeProof(
  key: ProofKey,
  subject: Subject,
  claims: Members = {},
  header: Members = {},
): string {
  const draft = draftProof(key, subject);
  Object.assign(draft.claims, claims);
  Object.assign(draft.header, header);
  return sealProof(draft);
}
