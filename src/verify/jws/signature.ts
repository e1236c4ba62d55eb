// Makes SignedPayload: the proof that this key signed these bytes. Trusts the key, whose algorithm was fixed
// at import (verify/keys/jwk.ts). Does not check the header: callers do.
import { verify } from 'node:crypto';
import { isBareError, withoutPrototype, type JsonObject } from '../base/encoding.ts';
import { sealing, type Sealed } from '../base/sealed.ts';
import { factsOf, type VerificationKey } from '../keys/jwk.ts';
import type { UnverifiedJws } from './compact.ts';

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
