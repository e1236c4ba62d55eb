// How many key sets of tenants are fetched at a time, and how often for unknown keys. Promises: tenants whose
// provider hangs or fails leave room for the others, and unauthenticated clients cause no flood of fetches.
import { nothing, type Clock } from '../../verify/base/clock.ts';
import { rejectionBy } from '../../verify/keys/fetch.ts';

const MOST = 20;
/** Of sets whose last fetch failed. */
const MOST_AGAIN = 5;

/** A fetch has 5 s, its wait for a turn included. If it began later, it would only time out. */
const MAX_WAITING_MILLIS = 4_500;

class Turn {
  readonly isAgain;
  readonly lateAtMillis;
  begin = nothing;
  readonly begun = new Promise<void>((resolve) => {
    this.begin = resolve;
  });

  constructor(isAgain: boolean, lateAtMillis: number) {
    this.isAgain = isAgain;
    this.lateAtMillis = lateAtMillis;
  }
}

/** Of all issuers of a gate or service. */
export class Slots {
  /** Those that run, too, in the order in which they came. */
  readonly #turns = new Set<Turn>();
  readonly #running = new Set<Turn>();
  readonly #clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Calls `fetch` in its turn. When `signal` aborts, it rejects and gives the slot back, even if `fetch`
   * ignores the signal.
   */
  async run<Result>(isAgain: boolean, signal: AbortSignal, fetch: () => Promise<Result>): Promise<Result> {
    const ended = rejectionBy(signal);
    const turn = new Turn(isAgain, this.#clock.monotonic() + MAX_WAITING_MILLIS);
    this.#turns.add(turn);
    this.#beginNext();
    try {
      await Promise.race([ended, turn.begun]);
      return await Promise.race([ended, fetch()]);
    } finally {
      this.#turns.delete(turn);
      this.#running.delete(turn);
      this.#beginNext();
    }
  }

  /** The newest first: it has the most time left. One that runs already goes on. */
  #beginNext() {
    const now = this.#clock.monotonic();
    for (const turn of [...this.#turns].reverse()) {
      if (this.#running.size >= MOST) return;
      if (now >= turn.lateAtMillis) continue;
      if (turn.isAgain && this.#countAgain() >= MOST_AGAIN) continue;

      this.#running.add(turn);
      turn.begin();
    }
  }

  #countAgain() {
    return [...this.#running].filter(({ isAgain }) => isAgain).length;
  }
}

const MOST_A_SECOND = 10;

/** Bounds what happens in any second. */
export class Pace {
  readonly #clock;
  /** Monotonic, the oldest first. */
  #times: readonly number[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether one more may happen now, which then counts. */
  readonly mayGoOn = (): boolean => {
    const now = this.#clock.monotonic();
    const recent = this.#times.filter((time) => now - time < 1_000);
    const isFull = recent.length >= MOST_A_SECOND;
    this.#times = isFull ? recent : [...recent, now];
    return !isFull;
  };
}
