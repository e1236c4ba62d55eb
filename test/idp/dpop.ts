/**
 * Verifies the DPoP proof of a token request (RFC 9449 §5) and returns the thumbprint that binds the token.
 * Does not remember `jti` values, and gives no nonces.
 */
import { createHash, createPublicKey, verify, type JsonWebKey, type KeyObject } from 'node:crypto';
import { OAuthError } from './oauth-error.ts';

/** The accepted `alg` values. */
export const PROOF_ALGORITHMS = ['ES256', 'RS256', 'EdDSA'];

const PROOF_LIFETIME_SECONDS = 60;

type Members = Record<string, unknown>;

function check(condition: boolean, description: string): asserts condition {
  if (!condition) throw new OAuthError('invalid_dpop_proof', description);
}

/**
 * The RFC 7638 thumbprint of the proof's key, if the proof is valid for a POST to `endpoint` at `nowSeconds`.
 */
export function verifyProof(proof: string, endpoint: string, nowSeconds: number): string {
  const parts = proof.split('.');
  check(
    parts.length === 3 && parts.every((part) => /^[\w-]+$/.test(part)),
    'the proof is not one compact JWS',
  );
  const [header, payload, signature] = parts as [string, string, string];
  const { jwk, key, alg } = checkHeader(parseObject(header));
  check(
    verify(
      alg === 'EdDSA' ? null : 'sha256',
      Buffer.from(`${header}.${payload}`),
      { key, dsaEncoding: 'ieee-p1363' },
      Buffer.from(signature, 'base64url'),
    ),
    'the signature is wrong',
  );
  checkClaims(parseObject(payload), endpoint, nowSeconds);
  return thumbprint(jwk);
}

function parseObject(part: string): Members {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(part, 'base64url').toString());
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  check(typeof value === 'object' && value !== null && !Array.isArray(value), 'a part is not a JSON object');
  return value as Members;
}

function checkHeader(header: Members): { jwk: JsonWebKey; key: KeyObject; alg: string } {
  const { typ, alg, jwk } = header;
  check(typ === 'dpop+jwt', 'typ is not dpop+jwt');
  check(
    typeof alg === 'string' && PROOF_ALGORITHMS.includes(alg),
    `alg is none of ${PROOF_ALGORITHMS.join(', ')}`,
  );
  check(header['crit'] === undefined, 'crit is not supported');
  check(typeof jwk === 'object' && jwk !== null, 'jwk is missing');
  check(!['d', 'k', 'p', 'q'].some((name) => name in jwk), 'jwk is not a public key');
  const key = importKey(jwk as JsonWebKey);
  check(fits(key, alg), 'jwk does not fit alg');
  return { jwk: jwk as JsonWebKey, key, alg };
}

function importKey(jwk: JsonWebKey): KeyObject {
  try {
    return createPublicKey({ key: jwk, format: 'jwk' });
  } catch {
    // Every error of the call above has the same meaning.
    throw new OAuthError('invalid_dpop_proof', 'jwk is not a key');
  }
}

function fits(key: KeyObject, alg: string): boolean {
  const details = key.asymmetricKeyDetails;
  if (alg === 'ES256') return details?.namedCurve === 'prime256v1';
  if (alg === 'RS256') return key.asymmetricKeyType === 'rsa' && (details?.modulusLength ?? 0) >= 2048;
  return key.asymmetricKeyType === 'ed25519';
}

function checkClaims(claims: Members, endpoint: string, nowSeconds: number): void {
  const { htm, htu, iat, jti } = claims;
  check(htm === 'POST', 'htm is not POST');
  check(typeof htu === 'string' && htu.replace(/[?#].*$/, '') === endpoint, `htu is not ${endpoint}`);
  check(
    typeof iat === 'number' && Math.abs(nowSeconds - iat) <= PROOF_LIFETIME_SECONDS,
    `iat is not within ${PROOF_LIFETIME_SECONDS} seconds of now`,
  );
  check(typeof jti === 'string' && jti !== '', 'jti is missing');
}

/** RFC 7638 §3: only the required members, in alphabetical order. */
function thumbprint(jwk: JsonWebKey): string {
  const names =
    { EC: ['crv', 'kty', 'x', 'y'], OKP: ['crv', 'kty', 'x'], RSA: ['e', 'kty', 'n'] }[jwk.kty ?? ''] ?? [];
  const required = names.map((name): [string, unknown] => [name, jwk[name]]);
  return createHash('sha256')
    .update(JSON.stringify(Object.fromEntries(required)))
    .digest('base64url');
}
