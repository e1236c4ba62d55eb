// The JWS Compact Serialization (RFC 7515 §3.1, §5.2): text → its parts, nothing of which is verified yet.
// Promises: one spelling only, so that the text identifies the token (its hash is a safe key).
import { decodeBase64url, parseJsonObject, type JsonObject } from '../base/encoding.ts';

/** A JWS of unknown origin. */
export interface UnverifiedJws {
  readonly header: JsonObject;
  readonly payload: JsonObject;
  /** The ASCII text that the signature covers. */
  readonly signingInput: string;
  readonly signature: Buffer;
}

/** Splits and decodes a compact JWS, or says what is wrong with it, in the words for a token. */
export function parseCompact(
  text: string,
): UnverifiedJws | 'token-malformed' | 'header-malformed' | 'payload-malformed' {
  const parts = text.split('.', 4);
  // RFC 7515 §5.2(1), RFC 7516 §9: five parts are a JWE, which is never a token here.
  if (parts.length !== 3) return 'token-malformed';

  // RFC 7515 §5.2(2), (6), (7)
  const [headerBytes, payloadBytes, signature] = parts.map(decodeBase64url);
  if (headerBytes === undefined || payloadBytes === undefined || signature === undefined) {
    return 'token-malformed';
  }

  // RFC 7515 §5.2(3)
  const header = parseJsonObject(headerBytes);
  if (header === undefined) return 'header-malformed';

  // RFC 7519 §7.2(10)
  const payload = parseJsonObject(payloadBytes);
  if (payload === undefined) return 'payload-malformed';

  return { header, payload, signingInput: text.slice(0, text.lastIndexOf('.')), signature };
}

/**
 * The media type that a `typ` member names: case aside, with or without its `application/` (RFC 7515
 * §4.1.9); `undefined` when it is no text.
 */
export const mediaType = (typ: unknown) =>
  typeof typ === 'string' ? typ.toLowerCase().replace(/^application\//, '') : undefined;
