// The replay store: used proofs (RFC 9449 §11.1). Other clients cannot fill it: proofs get here after every
// other check. Promises: drops no live entry; holds at most `capacity` entries of about 120 bytes.
import { hash } from 'node:crypto';
import { andThen, attempt, isPromise, type Clock, type MaybePromise } from '../base/clock.ts';
import { describeBug, type Fields, type Log } from '../base/events.ts';

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
  /** Resolves once a shared store is known to respond, or not to. */
  firstOutcome?(): Promise<void>;
  /** From then on every proof is `unavailable`. */
  close?(): void;
}

/** Creates a store with what it needs of a gate or service. */
export type CreateReplayStore = (clock: Clock, log: Log) => ReplayStore;

/**
 * Says whether a key of 43 characters is new, and keeps it for at least `keepSeconds`. Anything but a boolean
 * within a second is no verdict.
 */
export type IsNewProof = (key: string, keepSeconds: number) => MaybePromise<boolean>;

/** Another replica's clock may be this far behind. */
const SPARE_SECONDS = 60;

/** How long a shared store keeps a proof. Relative: its clock may differ from ours. */
export const keepSeconds = (expiresAtSeconds: number, nowSeconds: number): number =>
  Math.max(1, Math.ceil(expiresAtSeconds - nowSeconds) + 1) + SPARE_SECONDS;

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

const VERDICT_MILLIS = 1_000;
const MAX_WAITING = 10_000;
const LATE = {};

/** A store behind a function of the user. Promises: only `true` within a second makes a proof `new`. */
export function createOwnStore(isNew: IsNewProof, clock: Clock, log: Log): ReplayStore {
  let waiting = 0;
  let isUp = true;

  function verdictOf(answer: unknown): ReplayVerdict {
    if (typeof answer !== 'boolean') return lose({ reason: answer === LATE ? 'timeout' : 'not-a-boolean' });

    if (!isUp) log('replay store ready', {});
    isUp = true;
    return answer ? 'new' : 'seen';
  }

  function lose(why: Fields): ReplayVerdict {
    if (isUp) log('replay store lost', why);
    isUp = false;
    return 'unavailable';
  }

  function withinTime(answer: unknown) {
    if (!isPromise(answer)) return answer;

    waiting += 1;
    let cancel = () => {};
    const late = new Promise((resolve) => {
      // After the turn: this timer may be late, and the verdict on its way.
      cancel = clock.after(VERDICT_MILLIS, () => setImmediate(resolve, LATE));
    });
    return Promise.race([answer, late]).finally(() => {
      cancel();
      waiting -= 1;
    });
  }

  return {
    record(thumbprint, jti, expiresAtSeconds, nowSeconds) {
      if (waiting >= MAX_WAITING) return 'unavailable';

      const key = hashProof(thumbprint, jti, 'base64url');
      const seconds = keepSeconds(expiresAtSeconds, nowSeconds);
      return attempt(
        () => andThen(withinTime(isNew(key, seconds)), verdictOf),
        (error) => lose({ ...describeBug(error), reason: 'error' }),
      );
    },

    state: () => ({ isUp }),
  };
}
