// What tokens and DPoP proofs share: the JWS Compact Serialization (RFC 7515 §3.1, §5.2), and SignedPayload,
// which shows that this key signed these bytes. Trusts the key, whose algorithm was fixed at import
// (verify/keys/jwk.ts). Promises: the same parts have one spelling, so a token's hash is a safe key for the
// token cache. Does not check the header: callers do.
import { verify } from 'node:crypto';
import {
  decodeBase64url,
  isBareError,
  parseJsonObject,
  withoutPrototype,
  type JsonObject,
} from '../base/encoding.ts';
import { refuse, Refused } from '../base/refusal.ts';
import { sealing, type Sealed } from '../base/sealed.ts';
import { factsOf, type VerificationKey } from '../keys/jwk.ts';

export interface UnverifiedJws {
  readonly header: JsonObject;
  readonly payload: JsonObject;
  /** ASCII. */
  readonly signingInput: string;
  readonly signature: Buffer;
}

/** Verifies nothing. */
export function parseCompact(text: string): UnverifiedJws | Refused {
  const first = text.indexOf('.');
  const last = text.lastIndexOf('.');
  // RFC 7515 §5.2(1), RFC 7516 §9: a JWE, unsupported, has five parts.
  if (first >= last || text.indexOf('.', first + 1) !== last) return refuse('token-malformed');

  // RFC 7515 §5.2(2), (6), (7)
  const headerBytes = decodeBase64url(text.slice(0, first));
  const payloadBytes = decodeBase64url(text.slice(first + 1, last));
  const signature = decodeBase64url(text.slice(last + 1));
  if (!headerBytes || !payloadBytes || !signature) return refuse('token-malformed');

  // RFC 7515 §5.2(3)
  const header = parseJsonObject(headerBytes);
  if (header === undefined) return refuse('header-malformed');

  // RFC 7519 §7.2(10)
  const payload = parseJsonObject(payloadBytes);
  return payload === undefined
    ? refuse('payload-malformed')
    : { header, payload, signingInput: text.slice(0, last), signature };
}

/** In lower case, without `application/` (RFC 7515 §4.1.9). */
export const mediaType = (typ: unknown) =>
  typeof typ === 'string' ? typ.toLowerCase().replace(/^application\//, '') : undefined;

/** A payload with a good signature. Made only by `verifySignature`. */
export type SignedPayload = Sealed<JsonObject, 'SignedPayload'>;

const { seal, unseal } = sealing<JsonObject, 'SignedPayload'>();

/** Throws a `TypeError` for anything but a `SignedPayload`. */
export const payloadOf = unseal;

/** `undefined`: the signature does not match (RFC 7515 §5.2(8), RFC 7518 §3). */
export function verifySignature(jws: UnverifiedJws, key: VerificationKey): SignedPayload | undefined {
  const { digest, input } = factsOf(key);
  const signed = Buffer.from(jws.signingInput, 'latin1');
  try {
    return verify(digest, signed, input, jws.signature) ? seal(withoutPrototype(jws.payload)) : undefined;
  } catch (error) {
    // Deno imports Ed25519 keys that are not points on the curve (RFC 8032 §5.1.3).
    if (isBareError(error)) return undefined;
    throw error;
  }
}
