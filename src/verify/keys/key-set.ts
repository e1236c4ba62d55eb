// The provider's signing keys: which one a token names, when to fetch, how long to trust. Promises: one fetch
// at a time; a failed one changes no key; no key is used over an hour after its fetch; a fetch that
// succeeds drops withdrawn keys; held keys are found without waiting.
import { nothing, type MaybePromise } from '../base/clock.ts';
import type { JsonObject } from '../base/encoding.ts';
import {
  describeBug,
  printable,
  type FetchErrorReason,
  type Fields,
  type LogEvent,
  type Surroundings,
} from '../base/events.ts';
import { refuse, Refused, unavailable } from '../base/refusal.ts';
import { factsOf, importSigningKey, type Algorithm, type VerificationKey } from './jwk.ts';
import { FetchError, importKeySet, type ImportedKeys } from './jwks.ts';

export const REFRESH_AFTER_MILLIS = 10 * 60_000;
export const MAX_AGE_MILLIS = 60 * 60_000;
/** The pause between fetches caused by requests. */
export const REQUEST_PAUSE_MILLIS = 5_000;
export const MIN_BACKOFF_MILLIS = 1_000;
export const MAX_BACKOFF_MILLIS = 30_000;
const MAX_WAITING = 1_000;
/** The first may have begun before the key was published. */
const MAX_FETCHES_AWAITED = 2;

/** The keys of one issuer. All times are monotonic. Its members may be copied: they need no `this`. */
export class KeySet {
  readonly #issuerName;
  readonly #fetch;
  readonly #clock;
  readonly #around;
  readonly #importKey;
  readonly #mayFetchForKid;

  #held: readonly VerificationKey[] = [];
  #fetchedAtMillis = -Infinity;
  #lastLogged = '';

  #fetchUnderWay: Promise<void> | undefined;
  #lastError: FetchErrorReason | undefined;
  #backoffMillis = MIN_BACKOFF_MILLIS;
  #failedAtMillis = 0;
  #retryAtMillis = 0;
  #cancelRetry = nothing;
  #isClosed = false;
  #lastUnknownKidFetchMillis = -Infinity;
  /** How many requests wait for a fetch. */
  #waiting = 0;

  /**
   * `fetch` resolves with the provider's document or rejects with `FetchError`; any other error is a bug.
   * `mayFetchForKid` is asked before an unknown `kid` causes a fetch.
   */
  constructor(
    issuerName: string,
    fetch: () => Promise<JsonObject>,
    around: Surroundings,
    importKey = importSigningKey,
    mayFetchForKid = () => true,
  ) {
    this.#issuerName = issuerName;
    this.#fetch = fetch;
    this.#clock = around.clock;
    this.#around = around;
    this.#importKey = importKey;
    this.#mayFetchForKid = mayFetchForKid;
  }

  /** Returns the key that `kid` and `algorithm` name, or a promise if a fetch may bring it. */
  readonly find = (
    kid: string | undefined,
    algorithm: Algorithm,
    fetchesLeft = MAX_FETCHES_AWAITED,
  ): MaybePromise<VerificationKey | Refused> => {
    const keys = this.#currentKeys();
    const key = keyNamed(kid, algorithm, keys);
    if (typeof key !== 'string') return key;

    // For a token without `kid`, fetch only if there are no keys at all.
    const hasKeys = keys.length > 0;
    const mayFetch = fetchesLeft > 0 && (kid !== undefined || !hasKeys);
    const fetched = mayFetch ? this.#fetchToAwait(hasKeys) : undefined;
    const awaited = fetched ?? this.#refusal(key, kid, hasKeys);
    if (awaited instanceof Refused) return awaited.with({ issuerName: this.#issuerName });

    this.#waiting += 1;
    return awaited.then(() => {
      this.#waiting -= 1;
      const left = this.#lastError === undefined ? fetchesLeft - 1 : 0;
      return this.find(kid, algorithm, left);
    });
  };

  #refusal(reason: NoKeyReason, kid: string | undefined, hasKeys: boolean) {
    // If the last fetch failed, the key may be new: no 401.
    if (hasKeys && (kid === undefined || this.#lastError === undefined)) {
      // An unknown `kid` is a client's text.
      return refuse(reason).with(reason === 'algorithm-refused' ? { kid } : {});
    }

    const requestAtMillis = hasKeys ? Infinity : this.#failedAtMillis + REQUEST_PAUSE_MILLIS;
    // RFC 9110 §10.2.3: the next attempt is 1 to 30 seconds away.
    const nextAtMillis = Math.min(this.#retryAtMillis, requestAtMillis);
    const seconds = Math.ceil((nextAtMillis - this.#clock.monotonic()) / 1000);
    return unavailable('keys-unavailable', Math.max(1, seconds));
  }

  /** Infinity before the first success. */
  readonly ageMillis = () => this.#clock.monotonic() - this.#fetchedAtMillis;

  /** How many keys can verify a token now. Refreshes old ones. */
  readonly usable = () => this.#currentKeys().length;

  /** Never rejects. */
  readonly refresh = () => {
    this.#fetchUnderWay ??= this.#attempt().finally(() => {
      this.#fetchUnderWay = undefined;
    });
    return this.#fetchUnderWay;
  };

  /** Refreshes old keys, except after a failed fetch. */
  #currentKeys() {
    const age = this.ageMillis();
    if (age >= REFRESH_AFTER_MILLIS && this.#lastError === undefined) void this.refresh();
    if (age < MAX_AGE_MILLIS) return this.#held;

    if (this.#held.length > 0 && this.#lastError !== undefined) {
      this.#log('signing keys expired');
      this.#held = [];
    }
    return [];
  }

  #log(event: LogEvent, fields?: Fields) {
    this.#around.log(event, { issuer: printable(this.#issuerName), ...fields });
  }

  #fetchToAwait(isForUnknownKid: boolean) {
    if (this.#waiting >= MAX_WAITING) return unavailable('too-many-waiting');
    if (this.#fetchUnderWay !== undefined) return this.#fetchUnderWay;

    // For an unknown `kid`, the pause runs from the last such fetch; without keys, from the last error, so
    // that a hung provider gets a rest.
    const now = this.#clock.monotonic();
    const lastMillis = isForUnknownKid ? this.#lastUnknownKidFetchMillis : this.#failedAtMillis;
    if (now - lastMillis < REQUEST_PAUSE_MILLIS) return undefined;
    // Perhaps the key is new: no 401.
    if (isForUnknownKid && !this.#mayFetchForKid()) return unavailable('keys-unavailable');

    if (isForUnknownKid) this.#lastUnknownKidFetchMillis = now;
    return this.refresh();
  }

  async #attempt() {
    const startedAtMillis = this.#clock.monotonic();
    try {
      const imported = importKeySet(await this.#fetch(), this.#importKey);
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
    this.#around.count?.('key fetch', this.#lastError ?? 'ok', this.#issuerName);
  }

  #logChanges({ usable, skipped }: ImportedKeys) {
    const facts = usable.map(factsOf);
    const text = JSON.stringify([facts, skipped], ['kid', 'algorithm', 'thumbprint', 'reason']);
    if (text === this.#lastLogged && this.#lastError === undefined) return;

    this.#lastLogged = text;
    for (const key of skipped) this.#log('signing key skipped', key);
    const kids = facts.map(({ kid = '' }) => printable(kid));
    this.#log('signing keys loaded', { usable: usable.length, skipped: skipped.length, kids });
  }

  #recordError({ reason, code }: FetchError, bug?: Fields) {
    if (reason !== this.#lastError) {
      this.#log('signing keys could not be fetched', {
        ...bug,
        reason,
        code: printable(code),
        heldForSeconds: this.ageMillis() < Infinity ? Math.round(this.ageMillis() / 1000) : null,
      });
    }

    // Jitter: replicas must not retry together.
    const delayMillis = this.#backoffMillis * (0.8 + 0.2 * Math.random());
    this.#backoffMillis = Math.min(MAX_BACKOFF_MILLIS, this.#backoffMillis * 2);
    this.#lastError = reason;
    const now = this.#clock.monotonic();
    this.#failedAtMillis = now;
    // Once it is closed, only requests fetch.
    this.#retryAtMillis = now + (this.#isClosed ? REQUEST_PAUSE_MILLIS : delayMillis);
    this.#cancelRetry();
    if (!this.#isClosed) this.#cancelRetry = this.#clock.after(delayMillis, this.refresh);
  }

  /** Stops retries only. */
  readonly close = () => {
    this.#isClosed = true;
    this.#cancelRetry();
  };
}

/** Those of one issuer, or of several tenants. */
export type Keys = Pick<KeySet, keyof KeySet>;

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
