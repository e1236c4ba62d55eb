// Nonces without state (RFC 9449 §9): an HMAC over a slot of time, so that replicas which share the secret
// agree. Trusts the secret. Promises: only the nonces of the current and the previous slot are good.
import { createHmac } from 'node:crypto';
import { refuse } from '../base/refusal.ts';

const SLOT_MILLIS = 60_000;

/**
 * The check of a proof's nonce at `nowMillis` (since the epoch); `secret` has at least 32 characters and is
 * the same for all replicas. It gives the nonce to offer when a good one is of the previous slot, or a
 * `Refused`, with the nonce to use, when there is none that is good.
 */
export function createNonceCheck(secret: string) {
  /** In base64url (RFC 9449 §8.1). */
  function nonceOf(slot: number) {
    return createHmac('sha256', secret).update(`gatehouse DPoP nonce ${slot}`).digest('base64url');
  }

  return (nonce: unknown, nowMillis: number) => {
    const slot = Math.floor(nowMillis / SLOT_MILLIS);
    const freshNonce = nonceOf(slot);
    // Compared as text: a nonce is no secret, since whoever has none is told it.
    if (nonce === freshNonce) return undefined;
    if (nonce === nonceOf(slot - 1)) return freshNonce;

    // RFC 9449 §4.3(10), §9: a missing nonce is as bad as a wrong one.
    return refuse('proof-nonce').with({ freshNonce });
  };
}
