// The key sets of an issuer whose tenants have one each. Promises: a set is fetched for the first token of
// its tenant, and again only for one that needs it; addresses are made of the list alone. To the outside, all
// sets are one: one of them is kept fresh, so that the issuer is ready before any token comes.
import { printable, type Count, type Log, type Surroundings } from '../../verify/base/events.ts';
import { refuse } from '../../verify/base/refusal.ts';
import { withDeadline, type FetchKeySet } from '../../verify/keys/fetch.ts';
import type { Algorithm, ImportKey } from '../../verify/keys/jwk.ts';
import {
  KeySet,
  MAX_AGE_MILLIS,
  MAX_BACKOFF_MILLIS,
  MIN_BACKOFF_MILLIS,
  REFRESH_AFTER_MILLIS,
  REQUEST_PAUSE_MILLIS,
  type Keys,
} from '../../verify/keys/key-set.ts';
import { Pace, type Slots } from './slots.ts';

/** What the sets of one issuer share. */
export interface TenantKeysOptions {
  readonly issuerName: string;
  readonly importKey: ImportKey;
  /** Makes a fetch of the keys of a tenant from the list. */
  readonly createFetch: (tenant: string) => FetchKeySet;
  readonly slots: Slots;
}

/** How many sets `--check` fetches at a time. */
const MOST_CHECKED = 10;

/** The key set of one tenant. */
class TenantSet {
  readonly keys;
  readonly #around;
  #askedAtMillis = -Infinity;
  #fetchedAtMillis = -Infinity;
  #hasFailed = false;
  #usable = 0;

  constructor(tenant: string, options: TenantKeysOptions, around: Surroundings, pace: Pace) {
    const { issuerName, importKey, slots } = options;
    const { clock } = around;
    const fetch = options.createFetch(tenant);

    const fetchInTurn = withDeadline((signal) =>
      slots.run(this.#hasFailed, signal, () => {
        // A set whose turn never came has not failed.
        this.#hasFailed = true;
        return fetch(signal);
      }),
    );

    const log = logFor(tenant, around);
    this.#around = around;
    const own = { clock, log, count: this.#count };
    this.keys = new KeySet(issuerName, fetchInTurn, own, importKey, pace.mayGoOn);
    // No timer of its own: a tenant without requests would be fetched for ever.
    this.keys.close();
  }

  readonly #count: Count = (event, word, name) => {
    const { clock, count } = this.#around;
    this.#fetchedAtMillis = clock.monotonic();
    if (word === 'ok') {
      this.#hasFailed = false;
      this.#usable = this.keys.usable();
    }
    count?.(event, word, name);
  };

  find(kid: string | undefined, algorithm: Algorithm) {
    this.#askedAtMillis = this.#around.clock.monotonic();
    const isPaused = this.#askedAtMillis - this.#fetchedAtMillis < REQUEST_PAUSE_MILLIS;
    // Also after an error: nothing else fetches again.
    if (this.keys.ageMillis() >= REFRESH_AFTER_MILLIS && !isPaused) void this.keys.refresh();
    return this.keys.find(kid, algorithm);
  }

  /** Without a fetch. */
  usable() {
    return this.keys.ageMillis() < MAX_AGE_MILLIS ? this.#usable : 0;
  }

  /** Whether a token came while its keys would not be fetched again. */
  isInUse() {
    return this.#around.clock.monotonic() - this.#askedAtMillis < REFRESH_AFTER_MILLIS;
  }
}

/** At `debug`, a line names the tenant. */
function logFor(tenant: string, { log, level }: Surroundings): Log {
  if (level !== 'debug') return log;

  const named = { tenant: printable(tenant) };
  return (event, fields, error) => log(event, { ...fields, ...named }, error);
}

function agesOf(sets: readonly TenantSet[]) {
  return sets.map(({ keys }) => keys.ageMillis());
}

/** One set to the outside, for readiness and metrics. The issuer of each tenant copies its functions. */
export class TenantKeys implements Keys {
  readonly #tenants;
  readonly #options;
  readonly #around;
  readonly #pace;
  readonly #sets = new Map<string, TenantSet>();
  /** Of the tenant whose set is kept fresh. */
  #kept = 0;
  #keeping: Promise<void> | undefined;
  #backoffMillis = MIN_BACKOFF_MILLIS;
  /** While another attempt is to come. */
  #cancelRetry: (() => void) | undefined;
  #isClosed = false;

  constructor(tenants: readonly string[], options: TenantKeysOptions, around: Surroundings) {
    this.#tenants = tenants;
    this.#options = options;
    this.#around = around;
    this.#pace = new Pace(around.clock);
  }

  /** Of a tenant from the list. */
  of(tenant: string): TenantSet {
    const known = this.#sets.get(tenant);
    if (known !== undefined) return known;

    const set = new TenantSet(tenant, this.#options, this.#around, this.#pace);
    this.#sets.set(tenant, set);
    return set;
  }

  /** No token is of this issuer. */
  readonly find = () => refuse('issuer-mismatch');

  readonly refreshAll = async () => {
    // Those who take turns share it.
    const left = this.#tenants.values();
    const all = Array.from({ length: MOST_CHECKED }, () => this.#refreshInTurn(left));
    await Promise.all(all);
  };

  async #refreshInTurn(left: Iterable<string>) {
    for (const tenant of left) await this.of(tenant).keys.refresh();
  }

  /** Of the oldest in use, or else the youngest. Infinity before the first success. */
  readonly ageMillis = () => {
    const used = this.#all().filter((set) => set.isInUse());
    const held = agesOf(used).filter(Number.isFinite);
    return held.length > 0 ? Math.max(...held) : this.#youngestMillis();
  };

  #youngestMillis() {
    return Math.min(...agesOf(this.#all()));
  }

  #all() {
    return [...this.#sets.values()];
  }

  /** Asking keeps one fresh. */
  readonly usable = () => {
    if (!this.#isKept() && this.#cancelRetry === undefined) void this.refresh();
    return this.#all().reduce((sum, set) => sum + set.usable(), 0);
  };

  #isKept() {
    return this.#youngestMillis() < REFRESH_AFTER_MILLIS;
  }

  /** Fetches one set, and after a failure later the next one's, until one is held. Never rejects. */
  readonly refresh = (): Promise<void> => {
    this.#keeping ??= this.#keepOne().finally(() => {
      this.#keeping = undefined;
    });
    return this.#keeping;
  };

  async #keepOne() {
    const tenant = this.#tenants[this.#kept % this.#tenants.length] ?? '';
    await this.of(tenant).keys.refresh();
    if (this.#isKept()) {
      this.#backoffMillis = MIN_BACKOFF_MILLIS;
      return;
    }

    this.#kept += 1;
    this.#retryLater();
  }

  #retryLater() {
    if (this.#isClosed) return;

    // Jitter: replicas must not retry together.
    const delayMillis = this.#backoffMillis * (0.8 + 0.2 * Math.random());
    this.#backoffMillis = Math.min(MAX_BACKOFF_MILLIS, this.#backoffMillis * 2);
    this.#cancelRetry = this.#around.clock.after(delayMillis, () => {
      this.#cancelRetry = undefined;
      if (!this.#isKept()) void this.refresh();
    });
  }

  readonly close = () => {
    this.#isClosed = true;
    this.#cancelRetry?.();
  };
}
