// The provider's signing keys: which one a token means, when to fetch, how long to trust. Promises: one
// fetch at a time; a failed one changes nothing; no key over an hour old is used; a withdrawn key is gone
// with the next refresh; `find` answers at once while good keys are held. Does not know the network:
// keys/fetch.ts does.
import type { Clock, Later } from '../base/clock.ts';
import type { JsonObject } from '../base/encoding.ts';
import { printable, type Count, type FetchFlaw, type Log } from '../base/events.ts';
import { refuseToken, unavailable, type Refused } from '../base/refusal.ts';
import { factsOf, type VerificationKey } from './jwk.ts';
import { FetchFailure, keyNamed, importKeySet, type ImportedKeys } from './jwks.ts';

const REFRESH_AFTER_MILLIS = 10 * 60_000;
const MAX_AGE_MILLIS = 60 * 60_000;
const UNKNOWN_KID_PAUSE_MILLIS = 5_000;
const MAX_BACKOFF_MILLIS = 30_000;
const MAX_WAITING = 1_000;
/** A fetch under way may have begun before the key was published: then one more is awaited. */
const MAX_FETCHES_AWAITED = 2;

export class KeySet {
  readonly #fetch: () => Promise<JsonObject>;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #waiting: { requests: number };
  readonly #onFetched: Count;
  #keys: readonly VerificationKey[] | undefined;
  /** By the monotonic clock, like all that is an age or a pause here: nobody sets it back. */
  #fetchedAt = -Infinity;
  #composition = '';
  #isExpiryLogged = false;
  #fetchUnderWay: Promise<void> | undefined;
  #failure: FetchFlaw | undefined;
  #failures = 0;
  #retryAt = 0;
  #cancelRetry = () => {};
  #lastForUnknownKid = -Infinity;

  /**
   * `fetch` gives the provider's document, or rejects with `FetchFailure`; `waiting` counts the requests that
   * wait, for the keys of other providers too; `onFetched` takes `ok`, or why a fetch failed.
   */
  constructor(
    fetch: () => Promise<JsonObject>,
    clock: Clock,
    log: Log,
    waiting = { requests: 0 },
    onFetched: Count = () => {},
  ) {
    this.#fetch = fetch;
    this.#clock = clock;
    this.#log = log;
    this.#waiting = waiting;
    this.#onFetched = onFetched;
  }

  /**
   * The key that `kid` names, or without `kid` the only one: at once while it is held, else a promise of it.
   * Throws `Refused`, or rejects with it, when there is no such key or no answer to be had.
   */
  find(kid: string | undefined): Later<VerificationKey> {
    return this.#find(kid, MAX_FETCHES_AWAITED);
  }

  #find(kid: string | undefined, fetchesLeft: number): Later<VerificationKey> {
    const keys = this.#current();
    const key = keys === undefined ? undefined : keyNamed(kid, keys);
    if (key !== undefined) return key;
    if (keys !== undefined && kid === undefined) throw refuseToken('key-unknown');

    const fetch = fetchesLeft > 0 ? this.#fetchToAwait(keys !== undefined) : undefined;
    if (fetch !== undefined) {
      return this.#settled(fetch).then(() => {
        // A fetch that fails is the last that a request waits for.
        const left = this.#failure === undefined ? fetchesLeft - 1 : 0;
        return this.#find(kid, left);
      });
    }

    // After a failed fetch nobody can tell whether the provider has published the key.
    const isUncertain = keys === undefined || this.#failure !== undefined;
    throw isUncertain ? this.#unavailable() : refuseToken('key-unknown');
  }

  /** Whether keys were ever held. */
  get wasReady(): boolean {
    return this.#keys !== undefined;
  }

  /** Infinite while none were ever held. */
  get ageMillis(): number {
    return this.#clock.monotonic() - this.#fetchedAt;
  }

  /** How many keys can verify a token now. Asking counts as use, as it does in `isReady`. */
  get usable(): number {
    return this.#current()?.length ?? 0;
  }

  /** True while usable keys are held. Asking counts as use: it starts the refresh that old keys need. */
  isReady(): boolean {
    return this.usable > 0;
  }

  /** Starts a fetch, or joins the one under way. The promise never rejects; the outcome shows in `find`. */
  refresh(): Promise<void> {
    this.#fetchUnderWay ??= this.#attempt(this.#clock.monotonic()).finally(() => {
      this.#fetchUnderWay = undefined;
    });
    return this.#fetchUnderWay;
  }

  /** The keys, unless they are too old. After a failure the next attempt is the timer's, not a request's. */
  #current(): readonly VerificationKey[] | undefined {
    const age = this.ageMillis;
    if (age >= REFRESH_AFTER_MILLIS && this.#failure === undefined) void this.refresh();
    if (age < MAX_AGE_MILLIS) return this.#keys;

    if (this.#keys !== undefined && this.#failure !== undefined && !this.#isExpiryLogged) {
      this.#isExpiryLogged = true;
      this.#log('signing keys expired', { reason: 'keys-too-old' });
    }
    return undefined;
  }

  /** The fetch under way; else, when only a `kid` is unknown, one for it, if its time has come. */
  #fetchToAwait(isForUnknownKid: boolean): Promise<void> | undefined {
    if (this.#fetchUnderWay !== undefined || !isForUnknownKid) return this.#fetchUnderWay;

    // Unknown `kid`s, however many, cause one fetch in five seconds, counted from its start.
    const now = this.#clock.monotonic();
    if (now - this.#lastForUnknownKid < UNKNOWN_KID_PAUSE_MILLIS) return undefined;

    this.#lastForUnknownKid = now;
    return this.refresh();
  }

  /** Settles with the fetch. Throws `Refused` when too many requests wait already. */
  #settled(fetch: Promise<void>): Promise<void> {
    if (this.#waiting.requests >= MAX_WAITING) throw unavailable('too-many-waiting', 1);

    this.#waiting.requests += 1;
    return fetch.finally(() => {
      this.#waiting.requests -= 1;
    });
  }

  /** Tells the caller to come back at the next attempt, in 1 to 30 seconds (RFC 9110 §10.2.3). */
  #unavailable(): Refused {
    const seconds = Math.ceil((this.#retryAt - this.#clock.monotonic()) / 1000);
    return unavailable('keys-unavailable', Math.max(1, seconds));
  }

  async #attempt(startedAt: number): Promise<void> {
    try {
      this.#replace(importKeySet(await this.#fetch()), startedAt);
    } catch (failure) {
      this.#fail(failure instanceof FetchFailure ? failure : new FetchFailure('unforeseen'));
    }
    this.#onFetched(this.#failure ?? 'ok');
  }

  #replace(imported: ImportedKeys, fetchedAt: number): void {
    this.#logChange(imported);
    this.#cancelRetry();
    this.#keys = imported.usable;
    this.#fetchedAt = fetchedAt;
    this.#failure = undefined;
    this.#failures = 0;
    this.#isExpiryLogged = false;
  }

  /** Refreshes are frequent, changes are news. */
  #logChange({ usable, skipped }: ImportedKeys): void {
    const composition = JSON.stringify([usable.map(factsOf), skipped]);
    const isChanged = composition !== this.#composition;
    this.#composition = composition;
    for (const key of isChanged ? skipped : []) this.#log('signing key skipped', key);
    if (!isChanged && this.#failure === undefined) return;

    const kids = usable.map((key) => printable(factsOf(key).kid ?? ''));
    this.#log('signing keys loaded', { usable: usable.length, skipped: skipped.length, kids });
  }

  #fail({ reason, code }: FetchFailure): void {
    if (reason !== this.#failure) {
      // Infinite when none were ever held, for which JSON says null.
      const heldForSeconds = Math.round(this.ageMillis / 1000);
      this.#log('signing keys could not be fetched', { reason, code: printable(code), heldForSeconds });
    }

    // Jitter, so that replicas that lost the provider together do not come back together.
    const backoff = Math.min(MAX_BACKOFF_MILLIS, 1000 * 2 ** this.#failures);
    const delay = backoff * (0.8 + 0.2 * Math.random());
    this.#failure = reason;
    this.#failures += 1;
    this.#retryAt = this.#clock.monotonic() + delay;
    this.#cancelRetry();
    this.#cancelRetry = this.#clock.after(delay, () => void this.refresh());
  }
}
