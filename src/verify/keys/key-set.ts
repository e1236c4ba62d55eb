// The provider's signing keys: which one a token names, when to fetch, how long to trust. Promises: one fetch
// at a time; a failed one changes no key; no key is used over an hour after its fetch; a fetch that
// succeeds drops withdrawn keys; held keys are found without waiting.
import type { Clock, MaybePromise } from '../base/clock.ts';
import type { JsonObject } from '../base/encoding.ts';
import {
  describeBug,
  printable,
  type Count,
  type FetchErrorReason,
  type Fields,
  type Log,
} from '../base/events.ts';
import { refuse, unavailable, type Refused } from '../base/refusal.ts';
import { factsOf, type Algorithm, type VerificationKey } from './jwk.ts';
import { FetchError, importKeySet, type ImportedKeys } from './jwks.ts';

const REFRESH_AFTER_MILLIS = 10 * 60_000;
const MAX_AGE_MILLIS = 60 * 60_000;
/** The pause between fetches caused by requests. */
const REQUEST_PAUSE_MILLIS = 5_000;
const MIN_BACKOFF_MILLIS = 1_000;
const MAX_BACKOFF_MILLIS = 30_000;
const MAX_WAITING = 1_000;
/** The first may have begun before the key was published. */
const MAX_FETCHES_AWAITED = 2;

/** The keys of one issuer. All times are monotonic. */
export class KeySet {
  readonly #issuerName;
  readonly #issuer;
  readonly #fetch;
  readonly #clock;
  readonly #log;
  readonly #count;
  readonly #algorithms;
  #held: readonly VerificationKey[] = [];
  #fetchedAtMillis = -Infinity;
  #lastLogged = '';

  #fetchUnderWay: Promise<void> | undefined;
  #lastError: FetchErrorReason | undefined;
  #backoffMillis = MIN_BACKOFF_MILLIS;
  #failedAtMillis = 0;
  #retryAtMillis = 0;
  #cancelRetry = () => {};
  #isClosed = false;
  #lastUnknownKidFetchMillis = -Infinity;
  #waiting = 0;

  /**
   * `fetch` resolves with the provider's document or rejects with `FetchError`; any other error is a bug.
   * Skips keys whose algorithm is not in `algorithms`.
   */
  constructor(
    issuerName: string,
    fetch: () => Promise<JsonObject>,
    clock: Clock,
    log: Log,
    count?: Count,
    algorithms?: readonly Algorithm[],
  ) {
    this.#issuerName = issuerName;
    this.#issuer = printable(issuerName);
    this.#fetch = fetch;
    this.#clock = clock;
    this.#log = log;
    this.#count = count;
    this.#algorithms = algorithms;
  }

  /** Returns the key that `kid` and `algorithm` name, or a promise if a fetch may bring it. */
  find(
    kid: string | undefined,
    algorithm: Algorithm,
    fetchesLeft = MAX_FETCHES_AWAITED,
  ): MaybePromise<VerificationKey | Refused> {
    const keys = this.#currentKeys();
    const key = keyNamed(kid, algorithm, keys);
    if (typeof key !== 'string') return key;

    const issuerName = this.#issuerName;
    // For a token without `kid`, fetch only if there are no keys at all.
    const hasKeys = keys.length > 0;
    const mayFetch = fetchesLeft > 0 && (kid !== undefined || !hasKeys);
    const awaited = mayFetch ? this.#fetchToAwait(hasKeys) : undefined;
    if (awaited === undefined) return this.#refusal(key, kid, hasKeys).with({ issuerName });

    if (this.#waiting >= MAX_WAITING) return unavailable('too-many-waiting').with({ issuerName });

    this.#waiting += 1;
    return awaited.then(() => {
      this.#waiting -= 1;
      const left = this.#lastError === undefined ? fetchesLeft - 1 : 0;
      return this.find(kid, algorithm, left);
    });
  }

  #refusal(reason: NoKeyReason, kid: string | undefined, hasKeys: boolean) {
    // If the last fetch failed, the key may be new: no 401.
    if (hasKeys && (kid === undefined || this.#lastError === undefined)) {
      // An unknown `kid` is a client's text.
      return refuse(reason).with(reason === 'algorithm-refused' ? { kid } : {});
    }

    // RFC 9110 §10.2.3: the next attempt is 1 to 30 seconds away.
    const nextAtMillis = hasKeys
      ? this.#retryAtMillis
      : Math.min(this.#retryAtMillis, this.#failedAtMillis + REQUEST_PAUSE_MILLIS);
    const seconds = Math.ceil((nextAtMillis - this.#clock.monotonic()) / 1000);
    return unavailable('keys-unavailable', Math.max(1, seconds));
  }

  /** Infinity before the first success. */
  ageMillis() {
    return this.#clock.monotonic() - this.#fetchedAtMillis;
  }

  /** How many keys can verify a token now. Refreshes old ones. */
  usable() {
    return this.#currentKeys().length;
  }

  /** Never rejects. */
  refresh(): Promise<void> {
    this.#fetchUnderWay ??= this.#attempt().finally(() => {
      this.#fetchUnderWay = undefined;
    });
    return this.#fetchUnderWay;
  }

  /** Refreshes old keys, except after a failed fetch. */
  #currentKeys() {
    const age = this.ageMillis();
    if (age >= REFRESH_AFTER_MILLIS && this.#lastError === undefined) void this.refresh();
    if (age < MAX_AGE_MILLIS) return this.#held;

    if (this.#held.length > 0 && this.#lastError !== undefined) {
      this.#log('signing keys expired', { issuer: this.#issuer });
      this.#held = [];
    }
    return [];
  }

  #fetchToAwait(isForUnknownKid: boolean) {
    if (this.#fetchUnderWay !== undefined) return this.#fetchUnderWay;

    // For an unknown `kid`, the pause runs from the last such fetch; without keys, from the last error, so
    // that a hung provider gets a rest.
    const now = this.#clock.monotonic();
    const lastMillis = isForUnknownKid ? this.#lastUnknownKidFetchMillis : this.#failedAtMillis;
    if (now - lastMillis < REQUEST_PAUSE_MILLIS) return undefined;

    if (isForUnknownKid) this.#lastUnknownKidFetchMillis = now;
    return this.refresh();
  }

  async #attempt() {
    const startedAtMillis = this.#clock.monotonic();
    try {
      const fetch = this.#fetch;
      const imported = importKeySet(await fetch(), this.#algorithms);
      this.#logChanges(imported);

      this.#cancelRetry();
      this.#held = imported.usable;
      this.#fetchedAtMillis = startedAtMillis;
      this.#lastError = undefined;
      this.#backoffMillis = MIN_BACKOFF_MILLIS;
    } catch (thrown) {
      if (FetchError.is(thrown)) this.#recordError(thrown);
      else this.#recordError(new FetchError('unforeseen'), describeBug(thrown));
    }
    this.#count?.('key fetch', this.#lastError ?? 'ok', this.#issuerName);
  }

  #logChanges({ usable, skipped }: ImportedKeys) {
    const text = JSON.stringify([usable.map(factsOf), skipped]);
    if (text === this.#lastLogged && this.#lastError === undefined) return;

    this.#lastLogged = text;
    const issuer = this.#issuer;
    for (const key of skipped) this.#log('signing key skipped', { issuer, ...key });
    const kids = usable.map((key) => printable(factsOf(key).kid ?? ''));
    this.#log('signing keys loaded', { issuer, usable: usable.length, skipped: skipped.length, kids });
  }

  #recordError({ reason, code }: FetchError, bug?: Fields) {
    if (reason !== this.#lastError) {
      // Infinity becomes null in JSON.
      const heldForSeconds = Math.round(this.ageMillis() / 1000);
      this.#log('signing keys could not be fetched', {
        issuer: this.#issuer,
        ...bug,
        reason,
        code: printable(code),
        heldForSeconds,
      });
    }

    // Jitter: replicas must not retry together.
    const delayMillis = this.#backoffMillis * (0.8 + 0.2 * Math.random());
    this.#backoffMillis = Math.min(MAX_BACKOFF_MILLIS, this.#backoffMillis * 2);
    this.#lastError = reason;
    this.#failedAtMillis = this.#clock.monotonic();
    this.#retryAtMillis = this.#failedAtMillis + delayMillis;
    this.#cancelRetry();
    if (!this.#isClosed) this.#cancelRetry = this.#clock.after(delayMillis, () => void this.refresh());
  }

  /** Stops retries only. */
  close() {
    this.#isClosed = true;
    this.#cancelRetry();
  }
}

type NoKeyReason = 'key-unknown' | 'algorithm-refused';

/** The one key of this algorithm with this `kid`, or without `kid` the only key. Or why there is none. */
function keyNamed(
  kid: string | undefined,
  algorithm: Algorithm,
  keys: readonly VerificationKey[],
): VerificationKey | NoKeyReason {
  // RFC 7515 §4.1.4
  const named = keys.filter((key) => kid === undefined || factsOf(key).kid === kid);
  if (named.length === 0 || (kid === undefined && named.length > 1)) return 'key-unknown';

  // RFC 8725 §3.1: no header chooses how a key is used.
  const fitting = named.filter((one) => factsOf(one).algorithm === algorithm);
  const key = fitting[0];
  if (key === undefined) return 'algorithm-refused';

  // RFC 7517 §4.5: keys of different algorithms may share a `kid`.
  return fitting.length === 1 ? key : 'key-unknown';
}
