// Guards that may wait, such as for a policy engine. Promises: only `true`, in time, lets a request pass.
// Does not cache decisions: each is asked each time it stands.
import type { EventEmitter } from 'node:events';
import { andThen, attempt, isPromise, nothing, type Clock } from '../verify/base/clock.ts';
import { describeBug, printableSetting, type Fields } from '../verify/base/events.ts';
import { readPlainOptions, type RulesOf } from '../verify/base/option.ts';
import { refuse, unavailable, type Refused } from '../verify/base/refusal.ts';
import { issuerOf, type Caller } from '../verify/caller.ts';
import { checkTimes } from '../verify/token/claims.ts';
import type { Decision, Question, Surroundings, Wait } from '../gate/rules/further.ts';
import { MadeGuard, requireShowable } from '../gate/rules/guards.ts';

/** What a decision is about. */
export interface DecisionRequest {
  /** Has passed every guard that is not a decision, except `recentLogin`. */
  readonly caller: Caller;
  /** Empty in `gate.authorize`. */
  readonly method: string;
  /** As in the request target, without the query. Empty in `gate.authorize`. */
  readonly path: string;
  /** The parameters in the route's pattern. Empty in a gate. */
  readonly parameters: Readonly<Record<string, string>>;
  /** Aborts at the time limit, and when the connection is lost. */
  readonly signal: AbortSignal;
}

/** How long a decision may take. */
export interface DecisionOptions {
  /** Over 0, up to 30. Default: 2. */
  readonly timeoutSeconds?: number | undefined;
}

/** Returns whether a request may pass, or a promise of a boolean. Pass `signal` to `fetch`. */
export type DecisionFunction = (request: DecisionRequest) => boolean | PromiseLike<boolean>;

/** What came of asking. `value` is the function's own. */
type Outcome = Readonly<{ value: unknown }> | Readonly<{ error: unknown }> | 'timeout' | 'gone';

const asValue = (value: unknown) => ({ value });

const MAX_SECONDS = 30;

type Values = { readonly timeoutSeconds: number };

const DEFAULTS: Values = { timeoutSeconds: 2 };

const RULES: RulesOf<Values> = {
  timeoutSeconds: (value) =>
    typeof value === 'number' && value > 0 && value <= MAX_SECONDS
      ? undefined
      : `must be over 0 and up to ${MAX_SECONDS}`,
};

const MAX_WAITING = 1_000;

const UNAVAILABLE = unavailable('decision-unavailable');
const TOO_MANY = unavailable('too-many-waiting');
const GONE = UNAVAILABLE.with({ isGone: true });

/**
 * Passes when `decide` returns `true`, or a promise that resolves to `true`, within the time limit. Decisions
 * run after all other guards except `recentLogin`, in the order written. `false` is 403. An error, a timeout
 * or anything else is 503. The challenge shows `what`: 1 to 200 characters of printable ASCII without `"`,
 * `\` and `=`. Throws a `TypeError` for invalid arguments.
 *
 * @example needs(scope('pay'), decision('may pay from this account', askPolicy, { timeoutSeconds: 1 }))
 */
export function decision(what: string, decide: DecisionFunction, options: DecisionOptions = {}): Decision {
  const name = `decision ${what}`;
  if (typeof decide !== 'function') throw new TypeError(`${name}: needs a function that decides`);

  const { timeoutSeconds } = readPlainOptions<Values>(options, RULES, DEFAULTS, name);

  requireShowable(name, what);
  const refused = refuse('decision-refused', { description: `the request is not allowed: ${what}` });
  const { wait } = new Asking(what, decide, timeoutSeconds * 1000, refused);
  return new MadeGuard(name, () => false, refused, { wait });
}

/** One decision: what it is, how many requests wait for it, and whether it failed when last asked. */
class Asking {
  readonly #what;
  readonly #decide;
  readonly #limitMillis;
  readonly #refused;
  #waiting = 0;
  #isLost = false;

  constructor(what: string, decide: DecisionFunction, limitMillis: number, refused: Refused) {
    this.#what = what;
    this.#decide = decide;
    this.#limitMillis = limitMillis;
    this.#refused = refused;
  }

  /** Asks this decision, then the others, then the token's times: asking may have taken long. */
  readonly wait: Wait = (caller, question, surroundings, [next, ...others]) => {
    if (this.#waiting >= MAX_WAITING) {
      surroundings.count?.('decision', 'failed');
      return TOO_MANY;
    }

    return andThen(this.#begin(caller, question, surroundings), (outcome) => {
      const refused = this.#conclude(outcome, surroundings);
      if (refused !== undefined) return refused;
      if (next !== undefined) return next(caller, question, surroundings, others);

      // RFC 7519 §4.1.4
      return checkTimes(caller.claims, issuerOf(caller), surroundings.clock.now() / 1000);
    });
  };

  #begin(caller: Caller, { facts, readParameters, request }: Question, { clock }: Surroundings) {
    const controller = new AbortController();
    const { signal } = controller;
    const { method, path } = facts;
    const asked = Object.freeze({ caller, method, path, parameters: { ...readParameters?.() }, signal });

    const decide = () => andThen<unknown, Outcome>(this.#decide(asked), asValue);
    const known = attempt(decide, (error) => ({ error }));
    return isPromise(known) ? this.#await(known, controller, request, clock) : known;
  }

  /** The first end counts: what `decide` does afterwards changes nothing. `known` never rejects. */
  #await(
    known: Promise<Outcome>,
    controller: AbortController,
    request: unknown,
    clock: Clock,
  ): Promise<Outcome> {
    let ignore = nothing;
    let cancel = nothing;
    const outcome = new Promise<Outcome>((resolve) => {
      // First, since the request of another server may throw.
      ignore = onLoss(request, () => resolve('gone'));
      // After the turn: this timer may be late, and the decision on its way.
      cancel = clock.after(this.#limitMillis, () => setImmediate(resolve, 'timeout'));
      this.#waiting += 1;
      void known.then(resolve);
    });

    // In the context of the request, for tracing: a socket closes in another.
    return outcome.then((ended) => {
      this.#waiting -= 1;
      cancel();
      if (typeof ended === 'string') controller.abort();
      // Last, since it may throw, too.
      ignore();
      return ended;
    });
  }

  #conclude(outcome: Outcome, { log, count }: Surroundings): Refused | undefined {
    if (outcome === 'gone') return GONE;

    const guard = printableSetting(this.#what);
    const { value } = Object(outcome);
    if (typeof value === 'boolean') {
      count?.('decision', value ? 'allowed' : 'refused');
      if (this.#isLost) log('decision ready', { guard });
      this.#isLost = false;
      return value ? undefined : this.#refused;
    }

    count?.('decision', 'failed');
    if (!this.#isLost) log('decision lost', { guard, ...lossOf(outcome) });
    this.#isLost = true;
    return outcome !== 'timeout' && 'error' in outcome ? UNAVAILABLE.with({ thrown: outcome }) : UNAVAILABLE;
  }
}

function lossOf(outcome: Exclude<Outcome, 'gone'>): Fields {
  if (outcome === 'timeout') return { reason: 'timeout' };

  return 'error' in outcome
    ? { ...describeBug(outcome.error), reason: 'error' }
    : { reason: 'not-a-boolean' };
}

/** Calls `action` when the client of a request has left. Returns a function that ends that. */
function onLoss(request: unknown, action: () => void): () => void {
  const asked = Object(request);
  // Read late: Deno warns of a signal that is read.
  const given = Object(asked.socket ?? asked.signal);
  if (given.destroyed === true || given.aborted === true) queueMicrotask(action);
  if (typeof given.on === 'function') return onClose(given, action);
  if (typeof given.addEventListener !== 'function') return nothing;

  given.addEventListener('abort', action);
  return () => given.removeEventListener('abort', action);
}

/** What to do when a socket closes. One listener for each: a client may pipeline many requests. */
const actionsOf = new WeakMap<object, Set<() => void>>();

function onClose(socket: Pick<EventEmitter, 'on'>, action: () => void) {
  const actions = actionsOf.get(socket) ?? listenTo(socket);
  actions.add(action);
  return () => void actions.delete(action);
}

function listenTo(socket: Pick<EventEmitter, 'on'>) {
  const actions = new Set<() => void>();
  actionsOf.set(socket, actions);
  socket.on('close', () => {
    for (const each of actions) each();
  });
  return actions;
}
