// The provider's signing keys: which key a token means, when to fetch, how long to trust (contract §7). Promises: one fetch at a
// time; a failed one changes nothing; no key over an hour old is used; a withdrawn key is gone with the next refresh; `find`
// answers at once while good keys are held. Does not know the network: keys/fetch.ts does.
import { type Clock, type Later } from '../base/clock.ts';
import { asJsonObject, type JsonObject } from '../base/encoding.ts';
import { printable, type FetchFlaw, type KeyFlaw, type Log, type Printable } from '../base/events.ts';
import { refuseToken, unavailable, type Refused } from '../base/refusal.ts';
import { factsOf, importSigningKey, type VerificationKey } from './jwk.ts';

const [REFRESH_AFTER_MILLIS, MAX_AGE_MILLIS] = [10 * 60_000, 60 * 60_000];
const [UNKNOWN_KEY_PAUSE_MILLIS, MAX_BACKOFF_MILLIS] = [5_000, 30_000];
const MAX_WAITING = 1_000;
const MAX_KEYS = 100;
/** A fetch under way may have begun before the key was published: then one more is awaited. */
const MAX_FETCHES_AWAITED = 2;
/** A fetch of the key set that failed; `code` is Node's error code or the HTTP status. */
export class FetchFailure {
  readonly reason: FetchFlaw;
  readonly code: string;
  constructor(reason: FetchFlaw, code = '') {
    [this.reason, this.code] = [reason, code];
  }
}
type SkippedKey = Readonly<{ reason: KeyFlaw; kid: Printable }>;
/** `byKid` has the keys by the `kid` that they alone bear; one that several bear means none of them. */
type HeldKeys = Readonly<{
  usable: readonly VerificationKey[];
  byKid: ReadonlyMap<string, VerificationKey | undefined>;
  fetchedAt: number;
}>;
export class KeySet {
  readonly #fetch: () => Promise<JsonObject>;
  readonly #clock: Clock;
  readonly #log: Log;
  #held: HeldKeys | undefined;
  #flight: Promise<void> | undefined;
  #waiting = 0;
  #failure: FetchFlaw | undefined;
  #failures = 0;
  #retryAt = 0;
  #cancelRetry = () => {};
  #lastForUnknownKey = -Infinity;
  #isExpiryLogged = false;
  #composition = '';
  constructor(fetch: () => Promise<JsonObject>, clock: Clock, log: Log) {
    [this.#fetch, this.#clock, this.#log] = [fetch, clock, log];
  }
  /**
   * The key that `kid` names, or without `kid` the only one (RFC 7515 §4.1.4): at once while it is held, else a promise
   * of it. Throws `Refused`, or rejects with it, when there is no such key or no answer to be had.
   */
  find(kid: string | undefined): Later<VerificationKey> {
    return this.#find(kid, 0);
  }

  #find(kid: string | undefined, fetchesAwaited: number): Later<VerificationKey> {
    const held = this.#current();
    const key = held === undefined ? undefined : keyNamed(held, kid);
    if (key !== undefined) return key;

    // Who has waited for a fetch that failed does not wait for another one.
    const isLastTry =
      fetchesAwaited === MAX_FETCHES_AWAITED || (fetchesAwaited > 0 && this.#failure !== undefined);
    const needsFetch = held === undefined || (kid !== undefined && !isLastTry && this.#fetchForUnknownKey());
    if (needsFetch && !isLastTry) return this.#settled().then(() => this.#find(kid, fetchesAwaited + 1));

    // After a failed fetch nobody can tell whether the provider has published the key.
    const isUncertain = held === undefined || (kid !== undefined && this.#failure !== undefined);
    throw isUncertain ? this.#unavailable() : refuseToken('key-unknown');
  }

  /** True while usable keys are held. Asking counts as use: it starts the refresh that old keys need. */
  isReady(): boolean {
    return this.#current() !== undefined;
  }
  /** Starts a fetch, or joins the one under way. The promise never rejects; the outcome shows in `find`. */
  refresh(): Promise<void> {
    this.#flight ??= this.#attempt(this.#clock.now()).finally(() => {
      this.#flight = undefined;
      this.#waiting = 0;
    });
    return this.#flight;
  }
  /** The keys held, unless they are too old. After a failure the next attempt is the timer's, not a request's. */
  #current(): HeldKeys | undefined {
    // A wall clock that was set back makes keys old, not young.
    const age = this.#held === undefined ? Infinity : Math.abs(this.#clock.now() - this.#held.fetchedAt);
    if (age >= REFRESH_AFTER_MILLIS && this.#failure === undefined) void this.refresh();
    if (age < MAX_AGE_MILLIS) return this.#held;
    if (this.#held !== undefined && this.#failure !== undefined && !this.#isExpiryLogged) {
      this.#isExpiryLogged = true;
      this.#log('signing keys expired', { reason: 'keys-too-old' });
    }
    return undefined;
  }
  /** Unknown `kid`s, however many, cause one fetch in five seconds, counted from its start. True: there is one to await. */
  #fetchForUnknownKey(): boolean {
    const now = this.#clock.now();
    if (this.#flight === undefined) {
      if (Math.abs(now - this.#lastForUnknownKey) < UNKNOWN_KEY_PAUSE_MILLIS) return false;
      this.#lastForUnknownKey = now;
      void this.refresh();
    }
    return true;
  }
  /** Settles with the fetch under way. Throws `Refused` when there is none, or too many wait for it. */
  #settled(): Promise<void> {
    if (this.#flight === undefined) throw this.#unavailable();
    if (this.#waiting >= MAX_WAITING) throw unavailable('too-many-waiting', 1);

    this.#waiting += 1;
    return this.#flight;
  }

  /** Tells the caller to come back at the next attempt, in 1 to 30 seconds (RFC 9110 §10.2.3). */
  #unavailable(): Refused {
    return unavailable(
      'keys-unavailable',
      Math.min(30, Math.max(1, Math.ceil((this.#retryAt - this.#clock.now()) / 1000))),
    );
  }
  async #attempt(startedAt: number): Promise<void> {
    try {
      this.#replace(await this.#fetch(), startedAt);
    } catch (failure) {
      this.#fail(failure instanceof FetchFailure ? failure : new FetchFailure('unforeseen'));
    }
  }
  #replace(document: JsonObject, fetchedAt: number): void {
    const { usable, skipped } = readKeys(document);
    if (usable.length === 0) throw new FetchFailure('no-usable-key', skipped[0]?.reason);
    const byKid = new Map<string, VerificationKey | undefined>();
    for (const key of usable) {
      const { kid } = factsOf(key);
      if (kid === undefined) continue;
      if (byKid.has(kid)) skipped.push({ reason: 'key-id-repeated', kid: printable(kid) });
      byKid.set(kid, byKid.has(kid) ? undefined : key);
    }
    // Refreshes are frequent, changes are news.
    const composition = JSON.stringify([
      usable.map((key) => factsOf(key).kid + factsOf(key).thumbprint),
      skipped,
    ]);
    const isChanged = composition !== this.#composition;
    if (isChanged) for (const key of skipped) this.#log('signing key skipped', key);
    if (isChanged || this.#failure !== undefined)
      this.#log('signing keys loaded', { usable: usable.length, skipped: skipped.length });
    this.#cancelRetry();
    this.#held = { usable, byKid, fetchedAt };
    this.#composition = composition;
    this.#failure = undefined;
    this.#failures = 0;
    this.#isExpiryLogged = false;
  }
  #fail({ reason, code }: FetchFailure): void {
    const now = this.#clock.now();
    const heldForSeconds = this.#held === undefined ? null : Math.round((now - this.#held.fetchedAt) / 1000);
    if (reason !== this.#failure)
      this.#log('signing keys could not be fetched', { reason, code: printable(code), heldForSeconds });
    // Jitter, so that replicas that lost the provider together do not come back together.
    const delay = Math.min(MAX_BACKOFF_MILLIS, 1000 * 2 ** this.#failures) * (0.8 + 0.2 * Math.random());
    this.#failure = reason;
    this.#failures += 1;
    this.#retryAt = now + delay;
    this.#cancelRetry();
    this.#cancelRetry = this.#clock.after(delay, () => void this.refresh());
  }
}
/** Imports what is usable of a key set (RFC 7517 §5). */
function readKeys(document: JsonObject): { usable: VerificationKey[]; skipped: SkippedKey[] } {
  if (!Array.isArray(document.keys)) throw new FetchFailure('not-a-key-set');
  if (document.keys.length > MAX_KEYS) throw new FetchFailure('too-many-keys');
  const [usable, skipped]: [VerificationKey[], SkippedKey[]] = [[], []];
  for (const member of document.keys) {
    const jwk = asJsonObject(member);
    const key = jwk === undefined ? 'not-an-object' : importSigningKey(jwk);
    if (typeof key === 'string')
      skipped.push({ reason: key, kid: printable(typeof jwk?.kid === 'string' ? jwk.kid : '') });
    else usable.push(key);
  }
  return { usable, skipped };
}

function keyNamed({ usable, byKid }: HeldKeys, kid: string | undefined): VerificationKey | undefined {
  if (kid !== undefined) return byKid.get(kid);
  return usable.length === 1 ? usable[0] : undefined;
}
