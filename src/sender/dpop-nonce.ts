// Nonces without state (RFC 9449 §9): an HMAC over a slot of time, so that replicas which share the secret
// agree. Trusts the secret. Promises: only the nonces of the current and the previous slot are good.
import { createHmac, timingSafeEqual } from 'node:crypto';

const SLOT_MILLIS = 60_000;

export type NonceSource = ReturnType<typeof createNonces>;

/** `secret`: at least 32 characters, the same for all replicas. */
export function createNonces(secret: string) {
  /** The nonce to hand out, base64url (RFC 9449 §8.1); `nowMillis` is since the epoch. */
  function current(nowMillis: number) {
    const slot = Math.floor(nowMillis / SLOT_MILLIS);
    return createHmac('sha256', secret).update(`gatehouse DPoP nonce ${slot}`).digest('base64url');
  }

  /** The slot of a good nonce; `undefined` for any other. */
  function slotOf(nonce: unknown, nowMillis: number) {
    if (typeof nonce !== 'string') return undefined;
    if (isSame(nonce, current(nowMillis))) return 'current';
    return isSame(nonce, current(nowMillis - SLOT_MILLIS)) ? 'previous' : undefined;
  }

  return { current, slotOf };
}

/** Compares without telling by its time how much was right. */
function isSame(nonce: string, expected: string) {
  const bytes = Buffer.from(nonce);
  const expectedBytes = Buffer.from(expected);
  return bytes.length === expectedBytes.length && timingSafeEqual(bytes, expectedBytes);
}
