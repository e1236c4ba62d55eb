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

export type KeySet = ReturnType<typeof createKeySet>;

/**
 * Creates the key set of one issuer. `fetch` resolves with the provider's document or rejects with
 * `FetchError`; any other error is a bug. `mayFetchForKid` is asked before an unknown `kid` causes a fetch.
 */
export function createKeySet(
  issuerName: string,
  fetch: () => Promise<JsonObject>,
  clock: Clock,
  log: Log,
  count?: Count,
  importKey = importSigningKey,
  mayFetchForKid = () => true,
) {
  const issuer = printable(issuerName);
  let held: readonly VerificationKey[] = [];
  /** Monotonic, like all times here. */
  let fetchedAtMillis = -Infinity;
  let lastLogged = '';

  let fetchUnderWay: Promise<void> | undefined;
  let lastError: FetchErrorReason | undefined;
  let backoffMillis = MIN_BACKOFF_MILLIS;
  let failedAtMillis = 0;
  let retryAtMillis = 0;
  let cancelRetry = () => {};
  let isClosed = false;
  let lastUnknownKidFetchMillis = -Infinity;
  let waiting = 0;

  /** Returns the key that `kid` and `algorithm` name, or a promise if a fetch may bring it. */
  function find(
    kid: string | undefined,
    algorithm: Algorithm,
    fetchesLeft = MAX_FETCHES_AWAITED,
  ): MaybePromise<VerificationKey | Refused> {
    const keys = currentKeys();
    const key = keyNamed(kid, algorithm, keys);
    if (typeof key !== 'string') return key;

    // For a token without `kid`, fetch only if there are no keys at all.
    const hasKeys = keys.length > 0;
    const mayFetch = fetchesLeft > 0 && (kid !== undefined || !hasKeys);
    const awaited = mayFetch ? fetchToAwait(hasKeys) : undefined;
    if (awaited === undefined) return refusal(key, kid, hasKeys).with({ issuerName });
    // Perhaps the key is new: no 401.
    if (awaited === 'shed') return unavailable('keys-unavailable').with({ issuerName });

    if (waiting >= MAX_WAITING) return unavailable('too-many-waiting').with({ issuerName });

    waiting += 1;
    return awaited.then(() => {
      waiting -= 1;
      const left = lastError === undefined ? fetchesLeft - 1 : 0;
      return find(kid, algorithm, left);
    });
  }

  function refusal(reason: NoKeyReason, kid: string | undefined, hasKeys: boolean) {
    // If the last fetch failed, the key may be new: no 401.
    if (hasKeys && (kid === undefined || lastError === undefined)) {
      // An unknown `kid` is a client's text.
      return refuse(reason).with(reason === 'algorithm-refused' ? { kid } : {});
    }

    // RFC 9110 §10.2.3: the next attempt is 1 to 30 seconds away.
    const nextAtMillis = hasKeys
      ? retryAtMillis
      : Math.min(retryAtMillis, failedAtMillis + REQUEST_PAUSE_MILLIS);
    const seconds = Math.ceil((nextAtMillis - clock.monotonic()) / 1000);
    return unavailable('keys-unavailable', Math.max(1, seconds));
  }

  /** Infinity before the first success. */
  const ageMillis = () => clock.monotonic() - fetchedAtMillis;

  /** How many keys can verify a token now. Refreshes old ones. */
  const usable = () => currentKeys().length;

  /** Never rejects. */
  function refresh(): Promise<void> {
    fetchUnderWay ??= attempt().finally(() => {
      fetchUnderWay = undefined;
    });
    return fetchUnderWay;
  }

  /** Refreshes old keys, except after a failed fetch. */
  function currentKeys() {
    const age = ageMillis();
    if (age >= REFRESH_AFTER_MILLIS && lastError === undefined) void refresh();
    if (age < MAX_AGE_MILLIS) return held;

    if (held.length > 0 && lastError !== undefined) {
      log('signing keys expired', { issuer });
      held = [];
    }
    return [];
  }

  function fetchToAwait(isForUnknownKid: boolean) {
    if (fetchUnderWay !== undefined) return fetchUnderWay;

    // For an unknown `kid`, the pause runs from the last such fetch; without keys, from the last error, so
    // that a hung provider gets a rest.
    const now = clock.monotonic();
    const lastMillis = isForUnknownKid ? lastUnknownKidFetchMillis : failedAtMillis;
    if (now - lastMillis < REQUEST_PAUSE_MILLIS) return undefined;
    if (isForUnknownKid && !mayFetchForKid()) return 'shed';

    if (isForUnknownKid) lastUnknownKidFetchMillis = now;
    return refresh();
  }

  async function attempt() {
    const startedAtMillis = clock.monotonic();
    try {
      const imported = importKeySet(await fetch(), importKey);
      logChanges(imported);

      cancelRetry();
      held = imported.usable;
      fetchedAtMillis = startedAtMillis;
      lastError = undefined;
      backoffMillis = MIN_BACKOFF_MILLIS;
    } catch (thrown) {
      if (FetchError.is(thrown)) recordError(thrown);
      else recordError(new FetchError('unforeseen'), describeBug(thrown));
    }
    count?.('key fetch', lastError ?? 'ok', issuerName);
  }

  function logChanges({ usable, skipped }: ImportedKeys) {
    const facts = usable.map(factsOf);
    const known = facts.map(({ kid, algorithm, thumbprint }) => [kid, algorithm, thumbprint]);
    const text = JSON.stringify([known, skipped]);
    if (text === lastLogged && lastError === undefined) return;

    lastLogged = text;
    for (const key of skipped) log('signing key skipped', { issuer, ...key });
    const kids = facts.map(({ kid = '' }) => printable(kid));
    log('signing keys loaded', { issuer, usable: usable.length, skipped: skipped.length, kids });
  }

  function recordError({ reason, code }: FetchError, bug?: Fields) {
    if (reason !== lastError) {
      // Infinity becomes null in JSON.
      const heldForSeconds = Math.round(ageMillis() / 1000);
      log('signing keys could not be fetched', {
        issuer,
        ...bug,
        reason,
        code: printable(code),
        heldForSeconds,
      });
    }

    // Jitter: replicas must not retry together.
    const delayMillis = backoffMillis * (0.8 + 0.2 * Math.random());
    backoffMillis = Math.min(MAX_BACKOFF_MILLIS, backoffMillis * 2);
    lastError = reason;
    failedAtMillis = clock.monotonic();
    // Once it is closed, only requests fetch.
    retryAtMillis = failedAtMillis + (isClosed ? REQUEST_PAUSE_MILLIS : delayMillis);
    cancelRetry();
    if (!isClosed) cancelRetry = clock.after(delayMillis, () => void refresh());
  }

  /** Stops retries only. */
  function close() {
    isClosed = true;
    cancelRetry();
  }

  return { find, ageMillis, usable, refresh, close };
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
