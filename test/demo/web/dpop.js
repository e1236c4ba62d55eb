/*
 * Proofs of possession by WebCrypto (RFC 9449). The private key cannot be exported: a script that gets into the page can use
 * it while the page is open, and cannot take it away.
 */
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' };

export const makeKey = () => crypto.subtle.generateKey(ALGORITHM, false, ['sign', 'verify']);

const encodeBytes = (bytes) =>
  btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');

const encode = (value) => encodeBytes(new TextEncoder().encode(JSON.stringify(value)));

/** RFC 9449 §4.2: a proof that the holder of the key makes this request now; with a token it holds for that token alone. */
export async function makeProof({ publicKey, privateKey }, htm, htu, token) {
  const { kty, crv, x, y } = await crypto.subtle.exportKey('jwk', publicKey);
  const header = { typ: 'dpop+jwt', alg: 'ES256', jwk: { kty, crv, x, y } };
  const claims = { jti: crypto.randomUUID(), htm, htu, iat: Math.floor(Date.now() / 1000) };
  if (token !== undefined) {
    claims.ath = encodeBytes(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token)));
  }
  const input = `${encode(header)}.${encode(claims)}`;
  const signature = await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, privateKey, new TextEncoder().encode(input));
  return { proof: `${input}.${encodeBytes(signature)}`, header, claims };
}
