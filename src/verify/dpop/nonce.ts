// Nonces without state (RFC 9449 §9): the HMAC of a time slot, the same for replicas with one secret.
// Promises: accepts only the nonces of this slot and the previous one.
import { createHmac } from 'node:crypto';
import { refuse } from '../base/refusal.ts';

const SLOT_MILLIS = 60_000;

/**
 * The check returns a fresh nonce if the given one is of the previous slot, and in every refusal. `secret`
 * has at least 32 characters.
 */
export function createNonceCheck(secret: string) {
  /** In base64url (RFC 9449 §8.1). */
  function nonceOf(slot: number) {
    return createHmac('sha256', secret).update(`gatehouse DPoP nonce ${slot}`).digest('base64url');
  }

  return function checkNonce(nonce: unknown, nowMillis: number) {
    const slot = Math.floor(nowMillis / SLOT_MILLIS);
    const freshNonce = nonceOf(slot);
    // Not in constant time: nonces are not secret.
    if (nonce === freshNonce) return undefined;
    if (nonce === nonceOf(slot - 1)) return freshNonce;

    // RFC 9449 §4.3(10), §9: wrong or missing.
    return refuse('proof-nonce').with({ freshNonce });
  };
}
