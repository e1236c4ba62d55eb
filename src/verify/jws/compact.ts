// Parses the JWS Compact Serialization (RFC 7515 §3.1, §5.2). Verifies nothing. Promises: the same parts have
// one spelling, so a token's hash is a safe key for the token cache.
import { decodeBase64url, parseJsonObject, type JsonObject } from '../base/encoding.ts';
import { refuse, type Refused } from '../base/refusal.ts';

export interface UnverifiedJws {
  readonly header: JsonObject;
  readonly payload: JsonObject;
  /** ASCII. */
  readonly signingInput: string;
  readonly signature: Buffer;
}

export function parseCompact(text: string): UnverifiedJws | Refused {
  const parts = text.split('.', 4);
  // RFC 7515 §5.2(1), RFC 7516 §9: a JWE, unsupported, has five.
  if (parts.length !== 3) return refuse('token-malformed');

  // RFC 7515 §5.2(2), (6), (7)
  const [headerBytes, payloadBytes, signature] = parts.map(decodeBase64url);
  if (headerBytes === undefined || payloadBytes === undefined || signature === undefined) {
    return refuse('token-malformed');
  }

  // RFC 7515 §5.2(3)
  const header = parseJsonObject(headerBytes);
  if (header === undefined) return refuse('header-malformed');

  // RFC 7519 §7.2(10)
  const payload = parseJsonObject(payloadBytes);
  if (payload === undefined) return refuse('payload-malformed');

  return { header, payload, signingInput: text.slice(0, text.lastIndexOf('.')), signature };
}

/** In lower case, without `application/` (RFC 7515 §4.1.9). */
export const mediaType = (typ: unknown) =>
  typeof typ === 'string' ? typ.toLowerCase().replace(/^application\//, '') : undefined;
