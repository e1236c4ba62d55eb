// Access: who may use a route. Promises: admits only a Caller made by the sender check, or no caller where
// the route allows it. Does not read credentials: gate/decide.ts does.
import { refuse, type Refused } from '../../verify/base/refusal.ts';
import { hideConstructor } from '../../verify/base/sealed.ts';
import { isGenuine, type Caller } from '../../verify/caller.ts';
import { isGuard, type Guard } from './guards.ts';

class MadeAccess<Admitted> {
  readonly #isGenuine = true;
  readonly name;
  readonly credentials;
  /** Checked in this order, `recentLogin` last. */
  readonly guards;
  /** Called once nothing refuses the caller. */
  readonly admit;

  constructor(
    name: string,
    credentials: 'ignored' | 'optional' | 'required',
    admit: (caller: Caller | undefined) => Admitted,
    guards: readonly Guard[] = [],
  ) {
    this.name = name;
    this.credentials = credentials;
    this.guards = Object.freeze(guards);
    this.admit = admit;
    Object.freeze(this);
  }

  static is(access: unknown): access is MadeAccess<unknown> {
    return #isGenuine in Object(access);
  }
}

hideConstructor(MadeAccess);

/** Who may pass. `Admitted` is the handler's `caller`. Made in this file alone. */
export interface Access<Admitted> extends MadeAccess<Admitted> {}

/** Why this caller may not pass. `recentLogin` (RFC 9470) comes last, and only if something is served. */
export function checkAccess(
  demands: readonly Access<unknown>[],
  caller: Caller | undefined,
  isServed: boolean,
): Refused | undefined {
  if (caller === undefined) {
    const isRequired = demands.some(({ credentials }) => credentials === 'required');
    return isRequired ? refuse('no-credentials') : undefined;
  }

  const genuine = requireCaller(caller);
  let login: Refused | undefined;
  for (const { guards } of demands) {
    for (const guard of guards) {
      // Only `true` passes: in JavaScript a guard may return a promise.
      if (guard.passes(genuine) === true) continue;
      if (!isLogin(guard)) return guard.refused;

      login ??= guard.refused;
    }
  }
  // Choice: other guards first, so nobody logs in again only to be refused for a scope.
  return isServed ? login : undefined;
}

/** In JavaScript, it may be anything: a gate has a member `admit`, too. */
export const isAccess = MadeAccess.is;

const isLogin = ({ refused }: Guard) => refused.refusal.reason === 'login-insufficient';

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
 * Callers whose valid access token passes every guard. A guard that fails gives 403 (RFC 6750 §3.1),
 * `recentLogin` 401 (RFC 9470 §3). Throws a `TypeError` without guards, and for more than one `recentLogin`.
 *
 * @example get('/api/orders', needs(scope('read:orders'), claimEquals('tenant', 'acme')), listOrders)
 */
export function needs(...guards: readonly [Guard, ...Guard[]]): Access<Caller> {
  if (guards.length === 0 || !guards.every(isGuard)) {
    throw new TypeError(
      'needs() takes one or more guards, such as scope(…); without one, write authenticated',
    );
  }
  if (guards.filter(isLogin).length > 1) {
    throw new TypeError('needs() has more than one recentLogin; combine them');
  }

  const name = guards.map((guard) => guard.name).join(', ');
  return new MadeAccess(name, 'required', requireCaller, guards.slice());
}

function requireCaller(caller: Caller | undefined) {
  if (isGenuine(caller)) return caller;

  throw new TypeError('the caller was not made by the sender check');
}
