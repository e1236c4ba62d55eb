// The replay store: used proofs (RFC 9449 §11.1). Strangers cannot fill it, since proofs get here after every
// other check. Promises: drops no live entry; holds at most `capacity` entries of about 120 bytes.
import { hash } from 'node:crypto';
import type { MaybePromise } from '../base/clock.ts';

/** `new`: recorded now. `seen`: earlier. `full`: not recorded. `unavailable`: unknown. */
export type ReplayVerdict = 'new' | 'seen' | 'full' | 'unavailable';

/** A shared store must record atomically. */
export interface ReplayStore {
  /** Records a proof until `expiresAtSeconds` (since the epoch). */
  record(
    thumbprint: string,
    jti: string,
    expiresAtSeconds: number,
    nowSeconds: number,
  ): MaybePromise<ReplayVerdict>;
  /** For metrics: how many proofs this process holds, or whether a shared store responds. */
  state(): Readonly<{ entries: number } | { isUp: boolean }>;
  /** From then on every proof is `unavailable`. */
  close?(): void;
}

/** The 32 bytes by which a proof is recorded. */
export function hashProof(thumbprint: string, jti: string, encoding: 'binary' | 'base64url'): string {
  // Thumbprints have a fixed length, so no two pairs give the same text. JSON escapes lone surrogates.
  return hash('sha256', thumbprint + JSON.stringify(jti), encoding);
}

/**
 * Creates a store in this process for proofs that can pass for `windowSeconds`. Calls `onFull` when it is
 * full.
 */
export function createReplayStore(windowSeconds: number, capacity = 2 ** 20, onFull = () => {}): ReplayStore {
  // By time of expiry: whole buckets are dropped.
  const bucketSeconds = Math.max(1, Math.ceil(windowSeconds / 8));
  const buckets = new Map<number, Set<string>>();
  let entries = 0;
  let lastDropped = -Infinity;

  function dropExpired(nowSeconds: number) {
    for (const [bucket, names] of buckets) {
      if ((bucket + 1) * bucketSeconds > nowSeconds) continue;

      buckets.delete(bucket);
      entries -= names.size;
      lastDropped = Math.max(lastDropped, bucket);
    }
  }

  return {
    record(thumbprint, jti, expiresAtSeconds, nowSeconds) {
      dropExpired(nowSeconds);
      const name = hashProof(thumbprint, jti, 'binary');
      const bucket = Math.floor(expiresAtSeconds / bucketSeconds);

      // The clock was set back: the proof may have been dropped.
      if (bucket <= lastDropped) return 'seen';
      for (const names of buckets.values()) {
        if (names.has(name)) return 'seen';
      }
      if (entries === capacity) return 'full';

      const names = buckets.get(bucket) ?? new Set();
      buckets.set(bucket, names);
      names.add(name);
      entries += 1;
      if (entries === capacity) onFull();
      return 'new';
    },

    state: () => ({ entries }),
  };
}
