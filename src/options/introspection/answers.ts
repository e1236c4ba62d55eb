// What an issuer said of tokens, kept for a while under the digest of each. Promises: a bounded number, of
// which the oldest goes first.
import type { Answer } from './questions.ts';

interface Kept {
  readonly answer: Answer;
  /** Monotonic. */
  readonly untilMillis: number;
}

export class Answers {
  readonly #most: number;
  readonly #kept = new Map<string, Kept>();

  constructor(most: number) {
    this.#most = most;
  }

  find(digest: string, nowMillis: number): Answer | undefined {
    const kept = this.#kept.get(digest);
    if (kept === undefined || nowMillis < kept.untilMillis) return kept?.answer;

    this.#kept.delete(digest);
    return undefined;
  }

  /** Nothing that is over already: it would drop an older one. */
  keep(digest: string, answer: Answer, untilMillis: number) {
    if (untilMillis <= answer.askedAtMillis) return;

    // Requests that share an introspection request keep its response once, as the latest.
    this.#kept.delete(digest);
    this.#kept.set(digest, { answer, untilMillis });
    const [oldest = ''] = this.#kept.keys();
    if (this.#kept.size > this.#most) this.#kept.delete(oldest);
  }
}
