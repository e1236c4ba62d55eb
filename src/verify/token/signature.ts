// The signature check. Makes SignedPayload: the proof that a given key signed these very bytes. Trusts the
// key, which was fitted to its one algorithm when it was imported (verify/keys/jwk.ts). Does not look at the
// header: the callers do.
import { verify } from 'node:crypto';
import { withoutPrototype, type JsonObject } from '../base/encoding.ts';
import { sealing, type Sealed } from '../base/sealed.ts';
import { factsOf, type VerificationKey } from '../keys/jwk.ts';
import type { UnverifiedJws } from './compact.ts';

/** A payload whose signature holds, without a prototype. Only `verifySignature` makes one. */
export type SignedPayload = Sealed<JsonObject, 'SignedPayload'>;

const { seal, unseal } = sealing<JsonObject, 'SignedPayload'>();

/** The claims of a signed payload. Throws a `TypeError` for look-alikes. */
export const payloadOf = unseal;

/**
 * The payload as signed by `key`, or `undefined` when the signature does not match (RFC 7515 §5.2(8), RFC
 * 7518 §3).
 */
export function verifySignature(jws: UnverifiedJws, key: VerificationKey): SignedPayload | undefined {
  const { digest, input } = factsOf(key);
  const signed = Buffer.from(jws.signingInput, 'latin1');
  return verify(digest, signed, input, jws.signature) ? seal(withoutPrototype(jws.payload)) : undefined;
}
