// Nonces without state (RFC 9449 §9): the HMAC of a time slot, so replicas with the same secret agree.
// Trusts the secret. Promises: accepts only the nonces of this slot and the one before.
import { createHmac } from 'node:crypto';
import { refuse } from '../base/refusal.ts';

const SLOT_MILLIS = 60_000;

/**
 * Creates the check of a nonce; `secret` has at least 32 characters, `nowMillis` is since the epoch. For a
 * nonce of the previous slot it returns a fresh one; a refusal carries one too.
 */
export function createNonceCheck(secret: string) {
  /** In base64url (RFC 9449 §8.1). */
  function nonceOf(slot: number) {
    return createHmac('sha256', secret).update(`gatehouse DPoP nonce ${slot}`).digest('base64url');
  }

  return (nonce: unknown, nowMillis: number) => {
    const slot = Math.floor(nowMillis / SLOT_MILLIS);
    const freshNonce = nonceOf(slot);
    // Compared as text: a nonce is no secret.
    if (nonce === freshNonce) return undefined;
    if (nonce === nonceOf(slot - 1)) return freshNonce;

    // RFC 9449 §4.3(10), §9: refuses a missing nonce too.
    return refuse('proof-nonce').with({ freshNonce });
  };
}
