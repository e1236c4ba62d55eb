// The replay store: used proofs (RFC 9449 §11.1). Other clients cannot fill it: proofs get here after every
// other check. Promises: drops no live entry; holds at most `capacity` entries of about 120 bytes.
import { hash } from 'node:crypto';
import { andThen, attempt, isPromise, nothing, type Clock, type MaybePromise } from '../base/clock.ts';
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
  readonly firstOutcome?: Promise<void>;
  /** From then on every proof is `unavailable`. */
  close?(): void;
}

/** Creates a store with what it needs of a gate or service. */
export type CreateReplayStore = (clock: Clock, log: Log) => ReplayStore;

/**
 * Says whether a key (base64url, 43 characters) is new, and keeps it for at least `keepSeconds`, in one step.
 * Anything but a boolean within a second is no verdict: 503.
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

/** Keeps used proofs in this process. */
export class LocalReplayStore implements ReplayStore {
  readonly #bucketSeconds;
  readonly #capacity;
  readonly #log;
  /** By time of expiry: whole buckets are dropped. */
  readonly #buckets = new Map<number, Set<string>>();
  #entries = 0;
  #lastDropped = -Infinity;

  /** For proofs that can pass for `windowSeconds`. */
  constructor(windowSeconds: number, capacity = 2 ** 20, log: Log = nothing) {
    this.#bucketSeconds = Math.max(1, Math.ceil(windowSeconds / 8));
    this.#capacity = capacity;
    this.#log = log;
  }

  record(thumbprint: string, jti: string, expiresAtSeconds: number, nowSeconds: number) {
    this.#dropExpired(nowSeconds);
    const name = hashProof(thumbprint, jti, 'binary');
    const bucket = Math.floor(expiresAtSeconds / this.#bucketSeconds);

    // The clock was set back: the proof may have been dropped.
    if (bucket <= this.#lastDropped) return 'seen';
    for (const names of this.#buckets.values()) {
      if (names.has(name)) return 'seen';
    }
    if (this.#entries === this.#capacity) return 'full';

    const names = this.#buckets.get(bucket) ?? new Set();
    this.#buckets.set(bucket, names.add(name));
    this.#entries += 1;
    if (this.#entries === this.#capacity) this.#log('replay store full', {});
    return 'new';
  }

  #dropExpired(nowSeconds: number) {
    for (const [bucket, names] of this.#buckets) {
      if ((bucket + 1) * this.#bucketSeconds > nowSeconds) continue;

      this.#buckets.delete(bucket);
      this.#entries -= names.size;
      this.#lastDropped = Math.max(this.#lastDropped, bucket);
    }
  }

  state() {
    return { entries: this.#entries };
  }
}

const VERDICT_MILLIS = 1_000;
const MAX_WAITING = 10_000;
const LATE = {};

/** Asks a function of the user. Promises: only `true` within a second makes a proof `new`. */
export class OwnReplayStore implements ReplayStore {
  readonly #isNew;
  readonly #clock;
  readonly #log;
  #waiting = 0;
  #isUp = true;

  constructor(isNew: IsNewProof, clock: Clock, log: Log) {
    this.#isNew = isNew;
    this.#clock = clock;
    this.#log = log;
  }

  record(thumbprint: string, jti: string, expiresAtSeconds: number, nowSeconds: number) {
    if (this.#waiting >= MAX_WAITING) return 'unavailable';

    const isNew = this.#isNew;
    const key = hashProof(thumbprint, jti, 'base64url');
    const seconds = keepSeconds(expiresAtSeconds, nowSeconds);
    return attempt(
      () => andThen(this.#withinTime(isNew(key, seconds)), (answer) => this.#verdictOf(answer)),
      (error) => this.#lose({ ...describeBug(error), reason: 'error' }),
    );
  }

  #withinTime(answer: unknown) {
    if (!isPromise(answer)) return answer;

    this.#waiting += 1;
    let cancel = nothing;
    const late = new Promise((resolve) => {
      // After the turn: this timer may be late, and the verdict on its way.
      cancel = this.#clock.after(VERDICT_MILLIS, () => setImmediate(resolve, LATE));
    });
    return Promise.race([answer, late]).finally(() => {
      cancel();
      this.#waiting -= 1;
    });
  }

  #verdictOf(answer: unknown) {
    if (typeof answer !== 'boolean') {
      return this.#lose({ reason: answer === LATE ? 'timeout' : 'not-a-boolean' });
    }

    if (!this.#isUp) this.#log('replay store ready', {});
    this.#isUp = true;
    return answer ? 'new' : 'seen';
  }

  #lose(why: Fields): ReplayVerdict {
    if (this.#isUp) this.#log('replay store lost', why);
    this.#isUp = false;
    return 'unavailable';
  }

  state() {
    return { isUp: this.#isUp };
  }
}
