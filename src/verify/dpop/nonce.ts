// Nonces without state (RFC 9449 §9): an HMAC over a slot of time, so replicas with the same secret agree.
// Trusts the secret. Promises: only the nonces of the current and the previous slot are good.
import { createHmac } from 'node:crypto';
import { refuse } from '../base/refusal.ts';

const SLOT_MILLIS = 60_000;

/**
 * Creates the check of a proof's nonce at `nowMillis` (since the epoch). `secret` has at least 32
 * characters. Returns a fresh nonce when the proof's is of the previous slot. A refusal carries the nonce
 * to use.
 */
export function createNonceCheck(secret: string) {
  /** In base64url (RFC 9449 §8.1). */
  function nonceOf(slot: number) {
    return createHmac('sha256', secret).update(`gatehouse DPoP nonce ${slot}`).digest('base64url');
  }

  return (nonce: unknown, nowMillis: number) => {
    const slot = Math.floor(nowMillis / SLOT_MILLIS);
    const freshNonce = nonceOf(slot);
    // No constant-time comparison: a nonce is no secret, the refusal tells it.
    if (nonce === freshNonce) return undefined;
    if (nonce === nonceOf(slot - 1)) return freshNonce;

    // RFC 9449 §4.3(10), §9: refuses a missing nonce too.
    return refuse('proof-nonce').with({ freshNonce });
  };
}
