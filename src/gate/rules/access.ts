// Access: who may use a route. Promises: admits only a Caller made by the sender check, or no caller where
// the route allows it. Does not read credentials: gate/decide.ts does.
import { andThen, nothing, type MaybePromise } from '../../verify/base/clock.ts';
import { refuse, type Refused } from '../../verify/base/refusal.ts';
import { hideConstructor } from '../../verify/base/sealed.ts';
import { isGenuine, type Caller } from '../../verify/caller.ts';
import type { AnyGuard, Decision, PlainGuard, Question, Several, Surroundings } from './further.ts';
import { isGuard } from './guards.ts';

class MadeAccess<Admitted, Each> {
  readonly #isGenuine = true;
  readonly name;
  readonly credentials;
  /** Checked in this order, then those that wait, `recentLogin` last. */
  readonly guards;
  /** Called once nothing refuses the caller. */
  readonly admit;

  constructor(
    name: string,
    credentials: 'ignored' | 'optional' | 'required',
    admit: (caller: Caller | undefined) => Admitted,
    guards: readonly Each[] = [],
  ) {
    this.name = name;
    this.credentials = credentials;
    this.guards = Object.freeze(guards);
    this.admit = admit;
    Object.freeze(this);
  }

  static is(access: unknown): access is DecidedAccess<unknown> {
    return #isGenuine in Object(access);
  }
}

hideConstructor(MadeAccess);

/** Who may pass: `open`, `optional`, `authenticated`, or made by `needs`. The handler gets `Admitted`. */
export interface Access<Admitted> extends MadeAccess<Admitted, PlainGuard<unknown>> {}

/** An access that may have a `decision`, so that `gate.authorize` returns a promise. */
export interface DecidedAccess<Admitted> extends MadeAccess<Admitted, AnyGuard> {}

/** The accesses in force: those of the rules, then the route's. */
export type Demands = readonly DecidedAccess<unknown>[];

/**
 * Why this caller may not pass. Only if something is served, guards that wait come next, and `recentLogin`
 * (RFC 9470) last.
 */
export function checkAccess(
  demands: Demands,
  caller: Caller | undefined,
  isServed: boolean,
  question: Question,
  surroundings: Surroundings,
): MaybePromise<Refused | undefined> {
  if (caller === undefined) {
    // RFC 6750 §3
    const isRequired = demands.some(({ credentials }) => credentials === 'required');
    return isRequired ? refuse('no-credentials') : undefined;
  }

  requireCaller(caller);
  const failed = failedGuards(demands, caller, isServed);
  if (failed.length === 0) return undefined;

  const waits = failed.flatMap(({ further }) => further?.wait ?? []);
  const refusing = failed.find(({ further }) => further?.wait === undefined);
  const decided = waits.shift()?.(caller, question, surroundings, waits);
  return andThen(decided, (refused) => refused ?? refusing?.refused);
}

/**
 * One that refuses at once, or those that come later if something is served. Choice: others first, so that no
 * user logs in again only to be refused for a scope.
 */
function failedGuards(demands: Demands, caller: Caller, isServed: boolean) {
  const later: AnyGuard[] = [];
  for (const { guards } of demands) {
    for (const guard of guards) {
      // Only `true` passes: in JavaScript a guard may return a promise.
      if (guard.passes(caller) === true) continue;
      if (!isLogin(guard) && guard.further?.wait === undefined) return [guard];

      if (isServed) later.push(guard);
    }
  }
  return later;
}

/** In JavaScript, it may be anything: a gate has a member `admit`, too. */
export const isAccess = MadeAccess.is;

/** Whether it is decided as a promise, even if an earlier guard refuses. */
export function mayWait({ guards }: DecidedAccess<unknown>) {
  return guards.some(({ further }) => further?.wait);
}

/** Without `await`, `refusal` would be `undefined`, as for a caller who may pass. */
export function toBeAwaited<Value>(value: MaybePromise<Value>): Promise<Value> {
  const promise = Promise.resolve(value);
  // Where `await` was forgotten, a client that leaves would end the process.
  promise.catch(nothing);
  return Object.defineProperty(promise, 'refusal', {
    get() {
      throw new TypeError('authorize waits for the decisions of this access; await it');
    },
  });
}

const isLogin = ({ refused }: AnyGuard) => refused.refusal.reason === 'login-insufficient';

/**
 * Everyone. Ignores credentials.
 *
 * @example get('/api/status', open, () => ({ status: 'ok' }))
 */
export const open: Access<undefined> = new MadeAccess('open', 'ignored', () => undefined);

/**
 * Everyone. Credentials, if present, must be valid.
 *
 * @example get('/api/feed', optional, ({ caller }) => ({ for: caller?.subject ?? 'guest' }))
 */
export const optional: Access<Caller | undefined> = new MadeAccess(
  'optional',
  'optional',
  (caller) => caller,
);

/**
 * Callers with a valid access token.
 *
 * @example get('/api/me', authenticated, ({ caller }) => ({ id: caller.subject }))
 */
export const authenticated: Access<Caller> = new MadeAccess('authenticated', 'required', requireCaller);

/**
 * Callers whose valid access token passes every guard. Otherwise, the response is 403 (RFC 6750 §3.1) or, for
 * `recentLogin`, 401 (RFC 9470 §3). Throws a `TypeError` without guards, for anything but a guard, and for
 * more than one `recentLogin` or `claims`.
 *
 * @example get('/api/orders', needs(scope('read:orders'), claimEquals('tenant', 'acme')), listOrders)
 */
export function needs<Claims = Caller['claims']>(
  ...guards: Several<PlainGuard<Claims>>
): Access<Caller<Claims>>;

/**
 * The same with a `decision`, which may wait.
 *
 * @example needs(scope('pay'), decision('may pay from this account', askPolicy))
 */
export function needs<Claims = Caller['claims']>(
  ...guards: Several<PlainGuard<Claims> | Decision>
): DecidedAccess<Caller<Claims>>;

export function needs(...guards: readonly AnyGuard[]): DecidedAccess<Caller<unknown>> {
  if (guards.length === 0 || !guards.every(isGuard)) {
    throw new TypeError(
      'needs() takes guards of the same copy of the package, like scope(…); without one, use authenticated',
    );
  }
  const shapes = guards.flatMap(({ further }) => further?.admit ?? []);
  if (guards.filter(isLogin).length > 1 || shapes.length > 1) {
    throw new TypeError('needs() has more than one recentLogin or claims; combine them');
  }

  const name = guards.map((guard) => guard.name).join(', ');
  const [shape] = shapes;
  const admit = shape ? (caller: Caller | undefined) => shape(requireCaller(caller)) : requireCaller;
  return new MadeAccess(name, 'required', admit, guards);
}

function requireCaller(caller: Caller | undefined) {
  if (isGenuine(caller)) return caller;

  throw new TypeError('the caller was not made by the sender check');
}
