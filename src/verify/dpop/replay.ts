// The memory of proofs that were accepted (RFC 9449 §11.1). Only proofs that passed every other check get
// here, so strangers cannot fill it. Promises: no live entry is dropped, whatever the load; at most
// `capacity` entries of about 120 bytes.
import { hash } from 'node:crypto';
import type { MaybePromise } from '../base/clock.ts';

/**
 * `new`: recorded now, and only now. `seen`: accepted before. `full`: not recorded, there is no room.
 * `unavailable`: nobody can tell.
 */
export type ReplayVerdict = 'new' | 'seen' | 'full' | 'unavailable';

/**
 * Where accepted proofs are recorded. A store that replicas share answers later; it must record atomically.
 */
export interface ReplayStore {
  /**
   * Records the proof of a key (RFC 7638 thumbprint) with this `jti` while `nowSeconds <= expiresAt`
   * (seconds since the epoch).
   */
  record(thumbprint: string, jti: string, expiresAt: number, nowSeconds: number): MaybePromise<ReplayVerdict>;
  /** Its state, as a metric. */
  gauge(): readonly [name: string, value: number];
  /** Lets go of what is outside this process; from then on every proof is `unavailable`. */
  close?(): void;
}

/** The 32 bytes under which a proof is recorded, as text. */
export function hashProof(thumbprint: string, jti: string, encoding: 'binary' | 'base64url'): string {
  // A thumbprint has a fixed length, so the two cannot be split in another way; JSON keeps lone surrogates
  // apart.
  return hash('sha256', thumbprint + JSON.stringify(jti), encoding);
}

/**
 * A store in this process for proofs that can be accepted during `windowSeconds`; `capacity` is in entries;
 * `onFull` is called whenever the last room has been taken.
 */
export function createReplayStore(windowSeconds: number, capacity = 2 ** 20, onFull = () => {}): ReplayStore {
  // Entries lie in buckets by the time at which they expire, so that whole buckets go at once.
  const bucketSeconds = Math.max(1, Math.ceil(windowSeconds / 8));
  const buckets = new Map<number, Set<string>>();
  let entries = 0;
  let lastEmptied = -Infinity;

  function emptyExpired(nowSeconds: number) {
    for (const [bucket, names] of buckets) {
      if ((bucket + 1) * bucketSeconds > nowSeconds) continue;

      buckets.delete(bucket);
      entries -= names.size;
      lastEmptied = Math.max(lastEmptied, bucket);
    }
  }

  return {
    record(thumbprint, jti, expiresAt, nowSeconds) {
      emptyExpired(nowSeconds);
      const name = hashProof(thumbprint, jti, 'binary');
      const bucket = Math.floor(expiresAt / bucketSeconds);

      // After a clock was set back, what an emptied bucket held cannot be told from what is new.
      if (bucket <= lastEmptied) return 'seen';
      for (const names of buckets.values()) {
        if (names.has(name)) return 'seen';
      }
      if (entries === capacity) return 'full';

      const names = buckets.get(bucket) ?? new Set();
      buckets.set(bucket, names.add(name));
      entries += 1;
      if (entries === capacity) onFull();
      return 'new';
    },

    gauge: () => ['gatehouse_replay_entries', entries],
  };
}
