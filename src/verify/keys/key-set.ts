// The provider's signing keys: which one a token means, when to fetch, how long to trust. Promises: one
// fetch at a time; a failed one changes nothing; no key over an hour old is used; a withdrawn key is gone
// with the next refresh; `find` answers at once while good keys are held. Does not know the network:
// verify/keys/fetch.ts does.
import type { Clock, MaybePromise } from '../base/clock.ts';
import type { JsonObject } from '../base/encoding.ts';
import { describeBug, printable, type Count, type FetchFlaw, type Log } from '../base/events.ts';
import { refuse, unavailable, type Refused } from '../base/refusal.ts';
import { factsOf, type Algorithm, type VerificationKey } from './jwk.ts';
import { FetchFailure, keyNamed, importKeySet, type ImportedKeys } from './jwks.ts';

const REFRESH_AFTER_MILLIS = 10 * 60_000;
const MAX_AGE_MILLIS = 60 * 60_000;
/** Between fetches that requests cause. */
const REQUEST_PAUSE_MILLIS = 5_000;
const MIN_BACKOFF_MILLIS = 1_000;
const MAX_BACKOFF_MILLIS = 30_000;
const MAX_WAITING = 1_000;
/** A fetch under way may have begun before the key was published: then one more is awaited. */
const MAX_FETCHES_AWAITED = 2;

/** The signing keys of one issuer, as `createKeySet` gives them. */
export type KeySet = ReturnType<typeof createKeySet>;

/**
 * `issuerName` is the configured one; `fetch` gives the provider's document, or rejects with `FetchFailure`,
 * or with anything that is a bug; `count` is told what came of every fetch; `algorithms` are those that its keys may
 * verify, RS256 alone if they are not given.
 */
export function createKeySet(
  issuerName: string,
  fetch: () => Promise<JsonObject>,
  clock: Clock,
  log: Log,
  count?: Count,
  algorithms?: readonly Algorithm[],
) {
  const issuer = printable(issuerName);
  /** Empty until a fetch brings some, and once they are found to have expired after a failure. */
  let held: readonly VerificationKey[] = [];
  /** By the monotonic clock, like all that is an age or a pause here: nobody sets it back. */
  let fetchedAt = -Infinity;
  let told = '';

  let fetchUnderWay: Promise<void> | undefined;
  let failure: FetchFlaw | undefined;
  let backoffMillis = MIN_BACKOFF_MILLIS;
  let failedAt = 0;
  let retryAt = 0;
  let cancelRetry = () => {};
  let isClosed = false;
  let lastForUnknownKid = -Infinity;
  /** Requests that wait for a fetch. */
  let waiting = 0;

  /**
   * The key that `kid` names, or without `kid` the only one: at once while it is held, else a promise of it;
   * or why there is no such key, or no answer to be had.
   */
  function find(
    kid: string | undefined,
    fetchesLeft = MAX_FETCHES_AWAITED,
  ): MaybePromise<VerificationKey | Refused> {
    const keys = current();
    const key = keyNamed(kid, keys);
    if (key !== undefined) return key;

    // What names no key would not be found among others either.
    const hasKeys = keys.length > 0;
    const mayFetch = fetchesLeft > 0 && (kid !== undefined || !hasKeys);
    const awaited = mayFetch ? fetchToAwait(hasKeys) : undefined;
    if (awaited === undefined) return refusal(kid, hasKeys).with({ issuerName });

    if (waiting >= MAX_WAITING) return unavailable('too-many-waiting').with({ issuerName });

    waiting += 1;
    return awaited.then(() => {
      waiting -= 1;
      // A fetch that fails is the last that a request waits for.
      const left = failure === undefined ? fetchesLeft - 1 : 0;
      return find(kid, left);
    });
  }

  /** What is to be said of a key that is not there. */
  function refusal(kid: string | undefined, hasKeys: boolean) {
    // After a failed fetch nobody can tell whether the provider has published the key.
    if (hasKeys && (kid === undefined || failure === undefined)) return refuse('key-unknown');

    // Tells the caller to come back at the next attempt, in 1 to 30 seconds (RFC 9110 §10.2.3).
    const nextAt = hasKeys ? retryAt : Math.min(retryAt, failedAt + REQUEST_PAUSE_MILLIS);
    const seconds = Math.ceil((nextAt - clock.monotonic()) / 1000);
    return unavailable('keys-unavailable', Math.max(1, seconds));
  }

  /** Infinite while none were ever held. */
  const ageMillis = () => clock.monotonic() - fetchedAt;

  /**
   * How many keys can verify a token now. Asking counts as use: it starts the refresh that old keys need.
   */
  const usable = () => current().length;

  /** Starts a fetch, or joins the one under way. The promise never rejects; the outcome shows in `find`. */
  function refresh(): Promise<void> {
    fetchUnderWay ??= attempt().finally(() => {
      fetchUnderWay = undefined;
    });
    return fetchUnderWay;
  }

  /** The keys, or none when they are too old. After a failure this begins no attempt. */
  function current() {
    const age = ageMillis();
    if (age >= REFRESH_AFTER_MILLIS && failure === undefined) void refresh();
    if (age < MAX_AGE_MILLIS) return held;

    if (held.length > 0 && failure !== undefined) {
      log('signing keys expired', { issuer });
      held = [];
    }
    return [];
  }

  /** The fetch under way; else one for requests, if its time has come. */
  function fetchToAwait(isForUnknownKid: boolean) {
    if (fetchUnderWay !== undefined) return fetchUnderWay;

    // Unknown `kid`s, however many, cause one fetch in five seconds, counted from its start. Without keys
    // the five seconds are counted from the end of the last one, so that a provider which hangs has a rest.
    const now = clock.monotonic();
    if (now - (isForUnknownKid ? lastForUnknownKid : failedAt) < REQUEST_PAUSE_MILLIS) return undefined;

    if (isForUnknownKid) lastForUnknownKid = now;
    return refresh();
  }

  async function attempt() {
    const startedAt = clock.monotonic();
    try {
      const imported = importKeySet(await fetch(), algorithms);
      tellOf(imported);

      cancelRetry();
      held = imported.usable;
      fetchedAt = startedAt;
      failure = undefined;
      backoffMillis = MIN_BACKOFF_MILLIS;
    } catch (thrown) {
      if (FetchFailure.is(thrown)) noteFailure(thrown);
      else noteFailure(new FetchFailure('unforeseen'), describeBug(thrown));
    }
    const result = failure ?? 'ok';
    count?.(`gatehouse_key_fetches_total{issuer="${issuerName}",result="${result}"}`);
  }

  /** Refreshes are frequent; changes are news, and so is the end of a failure. */
  function tellOf({ usable, skipped }: ImportedKeys) {
    const news = JSON.stringify([usable.map(factsOf), skipped]);
    if (news === told && failure === undefined) return;

    told = news;
    for (const key of skipped) log('signing key skipped', { issuer, ...key });
    const kids = usable.map((key) => printable(factsOf(key).kid ?? ''));
    log('signing keys loaded', { issuer, usable: usable.length, skipped: skipped.length, kids });
  }

  function noteFailure({ reason, code }: FetchFailure, bug?: ReturnType<typeof describeBug>) {
    if (reason !== failure) {
      // Infinite when none were ever held, for which JSON says null.
      const heldForSeconds = Math.round(ageMillis() / 1000);
      log('signing keys could not be fetched', {
        issuer,
        ...bug,
        reason,
        code: printable(code),
        heldForSeconds,
      });
    }

    // Jitter, so that replicas that lost the provider together do not come back together.
    const delay = backoffMillis * (0.8 + 0.2 * Math.random());
    backoffMillis = Math.min(MAX_BACKOFF_MILLIS, backoffMillis * 2);
    failure = reason;
    failedAt = clock.monotonic();
    retryAt = failedAt + delay;
    cancelRetry();
    if (!isClosed) cancelRetry = clock.after(delay, () => void refresh());
  }

  /** From now on what failed is fetched again by nobody but who asks for it. */
  function close(): void {
    isClosed = true;
    cancelRetry();
  }

  return { find, ageMillis, usable, refresh, close };
}
