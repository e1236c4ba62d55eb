// Parses the JWS Compact Serialization (RFC 7515 §3.1, §5.2). Verifies nothing. Promises: the same parts have
// one spelling, so a token's hash is a safe key for the token cache.
import { decodeBase64url, parseJsonObject, type JsonObject } from '../base/encoding.ts';
import { refuse, Refused } from '../base/refusal.ts';

export interface UnverifiedJws {
  readonly header: JsonObject;
  readonly payload: JsonObject;
  /** ASCII. */
  readonly signingInput: string;
  readonly signature: Buffer;
}

export function parseCompact(text: string): UnverifiedJws | Refused {
  const parts = splitCompact(text);
  if (parts === undefined) return refuse('token-malformed');

  // RFC 7515 §5.2(6), (7)
  const { headerText, payloadText, signatureText, signingInput } = parts;
  const payloadBytes = decodeBase64url(payloadText);
  const signature = decodeBase64url(signatureText);
  if (payloadBytes === undefined || signature === undefined) return refuse('token-malformed');

  const header = parseHeader(headerText);
  if (header instanceof Refused) return header;

  // RFC 7519 §7.2(10)
  const payload = parseJsonObject(payloadBytes);
  return payload === undefined ? refuse('payload-malformed') : { header, payload, signingInput, signature };
}

/** RFC 7515 §5.2(1), RFC 7516 §9: a JWE, unsupported, has five parts. */
function splitCompact(text: string) {
  const first = text.indexOf('.');
  const last = text.lastIndexOf('.');
  if (first >= last || text.indexOf('.', first + 1) !== last) return undefined;

  return {
    headerText: text.slice(0, first),
    payloadText: text.slice(first + 1, last),
    signatureText: text.slice(last + 1),
    signingInput: text.slice(0, last),
  };
}

/** RFC 7515 §5.2(2), (3) */
function parseHeader(text: string): JsonObject | Refused {
  const bytes = decodeBase64url(text);
  if (bytes === undefined) return refuse('token-malformed');

  return parseJsonObject(bytes) ?? refuse('header-malformed');
}

/** In lower case, without `application/` (RFC 7515 §4.1.9). */
export const mediaType = (typ: unknown) =>
  typeof typ === 'string' ? typ.toLowerCase().replace(/^application\//, '') : undefined;
