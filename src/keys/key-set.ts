/*
 * The provider's signing keys: which key a token means, when to fetch, how long to trust.
 * Trusts the document that `fetch` gives only as far as importSigningKey does.
 * Promises: one fetch at a time; a failed one changes nothing; keys over an hour old are never used; a withdrawn key
 * is gone with the next refresh; `find` answers at once while good keys are held.
 * Does not know the network: keys/fetch.ts does.
 */
import { asJsonObject, type JsonObject } from '../encoding.ts';
import { printable, type FetchFlaw, type KeyFlaw, type Log } from '../log.ts';
import { refuseToken, Refused, unavailable } from '../refusal.ts';
import { importSigningKey, type VerificationKey } from './jwk.ts';

const REFRESH_AFTER_MILLIS = 10 * 60_000;
const MAX_AGE_MILLIS = 60 * 60_000;
const UNKNOWN_KEY_PAUSE_MILLIS = 5_000;
const MAX_BACKOFF_MILLIS = 30_000;
const MAX_WAITING = 1_000;
const MAX_KEYS = 100;
/** A request waits for a fetch under way and then for one of its own, never longer. */
const MAX_WAITS = 2;

/** Time as the service sees it: `now` in milliseconds since the epoch; `after` runs an action once and can be cancelled. */
export interface Clock {
  now(): number;
  after(millis: number, action: () => void): () => void;
}

/** A fetch of the key set that failed; `code` is Node's error code or the HTTP status. */
export class FetchFailure extends Error {
  readonly reason: FetchFlaw;
  readonly code: string;

  constructor(reason: FetchFlaw, code = '') {
    super(reason);
    this.reason = reason;
    this.code = code;
  }
}

/** Thrown when a request has to wait for a fetch: try again once `settled` is, which never rejects. */
export class KeysPending {
  readonly settled: Promise<void>;

  constructor(settled: Promise<void>) {
    this.settled = settled;
  }
}

interface HeldKeys {
  readonly usable: readonly VerificationKey[];
  /** Keys by the `kid` that they alone bear. */
  readonly byKid: ReadonlyMap<string, VerificationKey>;
  readonly fetchedAt: number;
}

export class KeySet {
  readonly #fetch: () => Promise<JsonObject>;
  readonly #clock: Clock;
  readonly #log: Log;
  #held: HeldKeys | undefined;
  #flight: Promise<void> | undefined;
  #waiting = 0;
  #failures = 0;
  #failure: FetchFlaw | undefined;
  #retryAt = 0;
  #cancelRetry = () => {};
  #lastForUnknownKey = -Infinity;
  #expiryLogged = false;
  #composition = '';

  constructor(fetch: () => Promise<JsonObject>, clock: Clock, log: Log) {
    this.#fetch = fetch;
    this.#clock = clock;
    this.#log = log;
  }

  /**
   * The key that `kid` names, or without `kid` the only one (contract §5, RFC 7515 §4.1.4).
   * `waits` says how often this request has waited already.
   * Throws `KeysPending` when a fetch must settle first, `Refused` when there is no such key or no answer to be had.
   */
  find(kid: string | undefined, waits: number): VerificationKey {
    const held = this.#current();
    if (held === undefined) throw this.#waitForFetch(waits);
    const key = kid === undefined ? soleKey(held) : held.byKid.get(kid);
    if (key !== undefined) return key;
    if (kid === undefined) throw refuseToken('key-unknown');
    if (waits < MAX_WAITS && this.#fetchForUnknownKey()) throw this.#waitForFetch(waits);
    throw this.#failure === undefined ? refuseToken('key-unknown') : this.#unavailable();
  }

  /** True while usable keys are held. Asking counts as use: it starts the refresh that old keys need. */
  isReady(): boolean {
    return this.#current() !== undefined;
  }

  /** Starts a fetch, or joins the one under way. The promise never rejects; the outcome shows in `find`. */
  refresh(): Promise<void> {
    this.#flight ??= this.#attempt().finally(() => {
      this.#flight = undefined;
      this.#waiting = 0;
    });
    return this.#flight;
  }

  /** The keys held, unless they are too old. After a failure the next attempt is the timer's, not a request's. */
  #current(): HeldKeys | undefined {
    const age = this.#held === undefined ? Infinity : this.#clock.now() - this.#held.fetchedAt;
    if (age >= REFRESH_AFTER_MILLIS && this.#failure === undefined) this.refresh();
    if (age < MAX_AGE_MILLIS) return this.#held;
    if (this.#held !== undefined && !this.#expiryLogged) this.#log('signing keys expired', { reason: 'keys-too-old' });
    this.#expiryLogged = true;
    return undefined;
  }

  /** Unknown `kid`s, however many, cause one fetch in five seconds, counted from its start. True: there is one to await. */
  #fetchForUnknownKey(): boolean {
    if (this.#flight !== undefined) return true;
    const now = this.#clock.now();
    if (now - this.#lastForUnknownKey < UNKNOWN_KEY_PAUSE_MILLIS) return false;
    this.#lastForUnknownKey = now;
    this.refresh();
    return true;
  }

  #waitForFetch(waits: number): KeysPending | Refused {
    if (this.#flight === undefined || waits >= MAX_WAITS) return this.#unavailable();
    if (this.#waiting >= MAX_WAITING) return unavailable('too-many-waiting', 1);
    this.#waiting += 1;
    return new KeysPending(this.#flight);
  }

  /** Tells the caller to come back at the next attempt, in 1 to 30 seconds (RFC 9110 §10.2.3). */
  #unavailable(): Refused {
    const seconds = Math.ceil((this.#retryAt - this.#clock.now()) / 1000);
    return unavailable('keys-unavailable', Math.min(30, Math.max(1, seconds)));
  }

  async #attempt(): Promise<void> {
    const startedAt = this.#clock.now();
    try {
      this.#replace(await this.#fetch(), startedAt);
    } catch (failure) {
      this.#fail(failure instanceof FetchFailure ? failure : new FetchFailure('unforeseen'));
    }
  }

  #replace(document: JsonObject, fetchedAt: number): void {
    const { usable, skipped } = readKeys(document, this.#held?.usable ?? []);
    if (usable.length === 0) throw new FetchFailure('no-usable-key', skipped[0]?.reason);
    const byKid = new Map<string, VerificationKey>();
    for (const key of usable) if (key.kid !== undefined) byKid.set(key.kid, key);
    for (const kid of repeatedKids(usable)) {
      byKid.delete(kid);
      skipped.push({ reason: 'key-id-repeated', kid: printable(kid) });
    }
    this.#held = { usable, byKid, fetchedAt };
    this.#cancelRetry();
    this.#failures = 0;
    this.#expiryLogged = false;
    this.#report(usable, skipped);
    this.#failure = undefined;
  }

  /** Logs a set only when it or the outcome differs from the last: refreshes are frequent, changes are news. */
  #report(usable: readonly VerificationKey[], skipped: readonly SkippedKey[]): void {
    const composition = JSON.stringify([usable.map((key) => [key.kid, key.thumbprint]), skipped]);
    if (composition === this.#composition && this.#failure === undefined) return;
    if (composition !== this.#composition) for (const key of skipped) this.#log('signing key skipped', key);
    this.#composition = composition;
    this.#log('signing keys loaded', { usable: usable.length, skipped: skipped.length });
  }

  #fail({ reason, code }: FetchFailure): void {
    const now = this.#clock.now();
    const heldForSeconds = this.#held === undefined ? null : Math.round((now - this.#held.fetchedAt) / 1000);
    if (reason !== this.#failure) this.#log('signing keys could not be fetched', { reason, code: printable(code), heldForSeconds });
    this.#failure = reason;
    const backoff = Math.min(MAX_BACKOFF_MILLIS, 1000 * 2 ** Math.min(this.#failures, 5));
    this.#failures += 1;
    // Jitter, so that replicas that lost the provider together do not come back together.
    const delay = backoff * (0.8 + 0.2 * Math.random());
    this.#retryAt = now + delay;
    this.#cancelRetry();
    this.#cancelRetry = this.#clock.after(delay, () => void this.refresh());
  }
}

type SkippedKey = { readonly reason: KeyFlaw; readonly kid: ReturnType<typeof printable> };

/** Imports what is usable of a key set (RFC 7517 §5); a key that was held before stays the same object. */
function readKeys(document: JsonObject, before: readonly VerificationKey[]): { usable: VerificationKey[]; skipped: SkippedKey[] } {
  if (!Array.isArray(document.keys)) throw new FetchFailure('not-a-key-set');
  if (document.keys.length > MAX_KEYS) throw new FetchFailure('too-many-keys');
  const usable: VerificationKey[] = [];
  const skipped: SkippedKey[] = [];
  for (const member of document.keys) {
    const jwk = asJsonObject(member);
    const key = jwk === undefined ? 'not-an-object' : importSigningKey(jwk);
    if (typeof key === 'string') skipped.push({ reason: key, kid: printable(typeof jwk?.kid === 'string' ? jwk.kid : '') });
    else usable.push(before.find((held) => held.kid === key.kid && held.thumbprint === key.thumbprint) ?? key);
  }
  return { usable, skipped };
}

const soleKey = ({ usable }: HeldKeys) => (usable.length === 1 ? usable[0] : undefined);

/** The `kid`s that more than one usable key bears: they name neither (contract §5). */
function repeatedKids(usable: readonly VerificationKey[]): Set<string> {
  const kids = usable.flatMap(({ kid }) => kid ?? []);
  return new Set(kids.filter((kid, index) => kids.indexOf(kid) !== index));
}
