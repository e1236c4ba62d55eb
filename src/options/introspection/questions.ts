// Which introspection requests are sent to an issuer, and when. Promises: a bounded number at a time, one for
// requests with the same token, and few while they fail. Only a response of the issuer says that a token is
// not active: whatever else happens is 503. Keeps no response.
import { withoutPrototype, type JsonObject } from '../../verify/base/encoding.ts';
import {
  describeBug,
  printable,
  type Fields,
  type IntrospectionReason,
  type LogEvent,
  type Surroundings,
} from '../../verify/base/events.ts';
import { unavailable, Refused } from '../../verify/base/refusal.ts';
import { withDeadline } from '../../verify/keys/fetch.ts';
import { FetchError } from '../../verify/keys/jwks.ts';
import type { Probed } from '../../verify/token/verify.ts';
import { DiscoveryError, type Asker } from './endpoint.ts';

const MAX_UNDER_WAY = 64;
const MAX_WAITING = 1_000;
/** For an introspection request, and waiting for its turn. */
const MAX_MILLIS = 5_000;
/** Of these, for its turn. A request sent later would only time out. */
const MAX_TURN_MILLIS = 4_500;
const MAX_FAILURES = 5;
const PAUSE_MILLIS = 1_000;

/** What an issuer said of a token: `active` is a boolean. */
export interface Answer {
  readonly response: JsonObject;
  /** Monotonic. */
  readonly askedAtMillis: number;
}

interface Problem {
  readonly reason: IntrospectionReason;
  readonly code: string;
  /** Whether it is about the token, which a client chooses. */
  readonly isOfClient?: boolean;
  /** For the log, if it is a bug. */
  readonly bug?: Fields;
}

type Outcome = Readonly<{ response: JsonObject }> | Readonly<{ problem: Problem }>;

/** Of a request that waits until others have ended. */
interface Turn {
  readonly cancelTimer: () => void;
  readonly resolve: (isInTime: boolean) => void;
}

export class Questions {
  readonly #issuerName;
  readonly #asker;
  readonly #clock;
  readonly #surroundings;
  /** By the digest of the token. */
  readonly #open = new Map<string, Promise<Answer | Refused>>();
  readonly #turns = new Set<Turn>();
  #underWay = 0;
  #waiting = 0;
  /** Introspection requests are numbered: an old one that fails late changes nothing. */
  #lastAsked = 0;
  #lastAnswered = 0;
  #askedAtMillis = -Infinity;
  /** In a row. With the first, the log says that the issuer is lost. */
  #failures = 0;

  constructor(issuerName: string, asker: Asker, surroundings: Surroundings) {
    this.#issuerName = issuerName;
    this.#asker = asker;
    this.#clock = surroundings.clock;
    this.#surroundings = surroundings;
  }

  /** Never rejects. */
  answerTo(token: string, digest: string): Promise<Answer | Refused> {
    const shared = this.#open.get(digest);
    if (shared !== undefined) return this.#waitFor(() => shared);

    const answer = this.#askInTurn(token).finally(() => this.#open.delete(digest));
    this.#open.set(digest, answer);
    return answer;
  }

  /** Asks about a random token, which was never issued. */
  async probe(token: string): Promise<Probed> {
    const outcome = await this.#fetch(token, MAX_MILLIS);
    const endpoint = this.#asker.address?.();
    if ('problem' in outcome) {
      const { problem } = outcome;
      return { endpoint, problem: { ...problem.bug, ...problem } };
    }

    const { active } = outcome.response;
    return active ? { endpoint, problem: { reason: 'active', code: '' } } : { endpoint };
  }

  /** Begins only what may wait: a refused request would never give its turn back. */
  async #waitFor<Value>(begin: () => Promise<Value>): Promise<Value | Refused> {
    if (this.#waiting >= MAX_WAITING) return this.#shed('too-many-waiting');

    this.#waiting += 1;
    const value = await begin();
    this.#waiting -= 1;
    return value;
  }

  async #askInTurn(token: string): Promise<Answer | Refused> {
    if (!this.#mayAsk()) return this.#shed('introspection-unavailable');

    const startedAtMillis = this.#clock.monotonic();
    if (this.#underWay < MAX_UNDER_WAY) {
      this.#underWay += 1;
    } else {
      const isTurn = await this.#waitFor(() => this.#nextTurn());
      if (isTurn instanceof Refused) return isTurn;
      if (!isTurn) return this.#shed('introspection-unavailable');
    }

    const endsAtMillis = startedAtMillis + MAX_MILLIS;
    const millisLeft = Math.max(1, Math.ceil(endsAtMillis - this.#clock.monotonic()));
    const answer = await (this.#mayAsk()
      ? this.#ask(token, millisLeft)
      : this.#shed('introspection-unavailable'));
    this.#passTurn();
    return answer;
  }

  /** After failures, one introspection request a second finds out whether the endpoint works again. */
  #mayAsk() {
    const pauseMillis = this.#failures < MAX_FAILURES ? 0 : PAUSE_MILLIS;
    return this.#clock.monotonic() - this.#askedAtMillis >= pauseMillis;
  }

  /** Resolves with whether it came in time. */
  #nextTurn(): Promise<boolean> {
    return new Promise((resolve) => {
      const cancelTimer = this.#clock.after(MAX_TURN_MILLIS, () => {
        this.#turns.delete(turn);
        resolve(false);
      });
      const turn = { cancelTimer, resolve };
      this.#turns.add(turn);
    });
  }

  /** The newest takes the place of the one that has ended: it has the most time left. */
  #passTurn() {
    const turn = [...this.#turns].at(-1);
    if (turn === undefined) {
      this.#underWay -= 1;
      return;
    }

    this.#turns.delete(turn);
    turn.cancelTimer();
    turn.resolve(true);
  }

  async #ask(token: string, millisLeft: number): Promise<Answer | Refused> {
    this.#lastAsked += 1;
    const number = this.#lastAsked;
    const askedAtMillis = this.#clock.monotonic();
    this.#askedAtMillis = askedAtMillis;

    const outcome = await this.#fetch(token, millisLeft);
    if ('problem' in outcome) return this.#fail(number, outcome.problem);

    this.#succeed(number);
    const { response } = outcome;
    this.#count(response.active ? 'active' : 'inactive');
    return { response, askedAtMillis };
  }

  async #fetch(token: string, millis: number): Promise<Outcome> {
    const ask = withDeadline((signal) => this.#asker.ask(token, signal), millis);
    try {
      const response = withoutPrototype(await ask());
      // RFC 7662 §2.2: a boolean, not its name.
      const isVerdict = typeof response.active === 'boolean';
      return isVerdict ? { response } : { problem: { reason: 'no-verdict', code: '' } };
    } catch (thrown) {
      if (FetchError.is(thrown)) return { problem: problemIn(thrown) };

      return { problem: { reason: 'unforeseen', code: '', bug: describeBug(thrown) } };
    }
  }

  #succeed(number: number) {
    this.#lastAnswered = Math.max(this.#lastAnswered, number);
    if (this.#failures > 0) this.#log('introspection ready');
    this.#failures = 0;
  }

  #fail(number: number, { reason, code, isOfClient, bug }: Problem) {
    this.#count('failed');
    // Otherwise clients whose tokens get a 400 could use up the one introspection request of each second.
    if (isOfClient) this.#askedAtMillis = -Infinity;
    if (!isOfClient && number > this.#lastAnswered) {
      this.#failures += 1;
      this.#asker.forget?.();
      const fields = { ...bug, reason, code: printable(code) };
      if (this.#failures === 1) this.#log('introspection lost', fields);
    }
    return this.#refuse('introspection-unavailable');
  }

  #log(event: LogEvent, fields?: Fields) {
    this.#surroundings.log(event, { issuer: printable(this.#issuerName), ...fields });
  }

  #shed(reason: 'introspection-unavailable' | 'too-many-waiting') {
    this.#count('shed');
    return this.#refuse(reason);
  }

  #refuse(reason: 'introspection-unavailable' | 'too-many-waiting') {
    return unavailable(reason).with({ issuerName: this.#issuerName });
  }

  #count(result: string) {
    this.#surroundings.count?.('introspection', result, this.#issuerName);
  }
}

function problemIn(error: FetchError): Problem {
  const { reason, code } = error;
  if (reason !== 'status-refused' || error instanceof DiscoveryError) return { reason, code };

  // RFC 7662 §2.3, RFC 6749 §5.2: this API may not ask, which says nothing about the token.
  if (code === '401' || code === '403') return { reason: 'client-refused', code };

  // A client chooses the token: what the issuer cannot read says nothing about the issuer.
  return { reason, code, isOfClient: code === '400' };
}
