/*
 * The signature check. Makes SignedPayload: the proof that a given key signed these very bytes.
 * Trusts the key, which was fitted to its one algorithm when it was imported (keys/jwk.ts).
 * Does not choose the key or the algorithm, and does not look at the header: the callers do.
 */
import { verify } from 'node:crypto';
import type { JsonObject } from '../encoding.ts';
import { digestOf, keyObjectOf, type VerificationKey } from '../keys/jwk.ts';
import type { UnverifiedJws } from './compact.ts';

class Signed {
  readonly #payload: JsonObject;

  constructor(payload: JsonObject) {
    this.#payload = payload;
  }

  static payloadOf(signed: Signed): JsonObject {
    return signed.#payload;
  }
}
/** A payload whose signature holds. Only `verifySignature` makes one; `payloadOf` refuses look-alikes. */
export type SignedPayload = Signed;
export const { payloadOf } = Signed;

/** The payload as signed by `key`, or `undefined` when the signature does not match (RFC 7515 §5.2(8), RFC 7518 §3). */
export function verifySignature(jws: UnverifiedJws, key: VerificationKey): SignedPayload | undefined {
  const input = Buffer.from(jws.signingInput, 'latin1');
  return verify(digestOf(key), input, keyObjectOf(key), jws.signature) ? new Signed(jws.payload) : undefined;
}
