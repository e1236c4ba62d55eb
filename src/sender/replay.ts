// The memory of used proofs (RFC 9449 §11.1). Only proofs that passed every other check get here, so strangers cannot fill it.
// Promises: no live entry is dropped, whatever the load; at most `capacity` entries of about 120 bytes.
import { hash } from 'node:crypto';

/** `new`: recorded now, and only now. `seen`: used before. `full`: not recorded, there is no room. */
export type ReplayVerdict = 'new' | 'seen' | 'full';
/** Where used proofs are recorded. A store that replicas share answers later; it must record atomically. */
export interface ReplayStore {
  /** Records the proof of a key (RFC 7638 thumbprint) with this `jti` while `nowSeconds <= expiresAt` (seconds since the epoch). */
  record(
    thumbprint: string,
    jti: string,
    expiresAt: number,
    nowSeconds: number,
  ): ReplayVerdict | Promise<ReplayVerdict>;
}
/** A store in this process for proofs that can be accepted during `windowSeconds`; `capacity` is in entries; `onFull` is called
 * once whenever there is no room any more. */
export function createReplayStore(windowSeconds: number, capacity = 2 ** 20, onFull = () => {}): ReplayStore {
  // Entries lie in drawers by the time they expire, so that whole drawers go at once.
  const drawerSeconds = Math.max(1, Math.ceil(windowSeconds / 8));
  const drawers = new Map<number, Set<string>>();
  let [entries, isFull, emptied] = [0, false, -Infinity];
  return {
    record: (thumbprint, jti, expiresAt, nowSeconds) => {
      for (const [drawer, names] of drawers) {
        if ((drawer + 1) * drawerSeconds > nowSeconds) continue;
        drawers.delete(drawer);
        [entries, emptied] = [entries - names.size, Math.max(emptied, drawer)];
      }
      // A thumbprint has a fixed length, so the two cannot be split in another way; JSON keeps lone surrogates apart.
      const name = hash('sha256', thumbprint + JSON.stringify(jti), 'binary');
      const drawer = Math.floor(expiresAt / drawerSeconds);
      // After a clock was set back, what an emptied drawer held cannot be told from what is new.
      if (drawer <= emptied || [...drawers.values()].some((names) => names.has(name))) return 'seen';
      if (entries >= capacity && !isFull) onFull();
      isFull = entries >= capacity;
      if (isFull) return 'full';
      drawers.set(drawer, (drawers.get(drawer) ?? new Set()).add(name));
      entries += 1;
      return 'new';
    },
  };
}
