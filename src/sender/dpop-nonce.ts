// Nonces without state (RFC 9449 §9): an HMAC over a slot of time, so that replicas which share the secret agree.
// Trusts the secret. Promises: only the nonces of the present and the previous slot are good.
import { createHmac, timingSafeEqual } from 'node:crypto';

const SLOT_MILLIS = 60_000;
/** `present` gives the nonce to hand out, base64url (RFC 9449 §8.1), `age` the slot of a good one; `nowMillis` is since the epoch. */
export type Nonces = ReturnType<typeof createNonces>;
/** `secret`: at least 32 characters, the same for all replicas. */
export function createNonces(secret: string) {
  const present = (nowMillis: number) =>
    createHmac('sha256', secret)
      .update(`gatehouse DPoP nonce ${Math.floor(nowMillis / SLOT_MILLIS)}`)
      .digest('base64url');
  const age = (nonce: unknown, nowMillis: number) => {
    if (typeof nonce !== 'string') return undefined;
    if (isSame(nonce, present(nowMillis))) return 'present';
    return isSame(nonce, present(nowMillis - SLOT_MILLIS)) ? 'previous' : undefined;
  };
  return { present, age };
}
/** Compares without telling by its time how much was right. */
const isSame = (given: string, expected: string) =>
  Buffer.byteLength(given) === Buffer.byteLength(expected) &&
  timingSafeEqual(Buffer.from(given), Buffer.from(expected));
