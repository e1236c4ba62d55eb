// Access: who may use a route. Promises: what is admitted is a Caller that a sender check made, or nobody
// where the route says so. Does not read credentials: gate/front.ts does, where an access asks for them.
import { refuse, type Refused } from '../verify/base/refusal.ts';
import { isGenuine, type Caller } from '../verify/caller.ts';
import type { Guard } from './guards.ts';

/** Who may use a route. `Admitted` is what the handler then receives as `caller`. */
export interface Access<Admitted> {
  /** As it stands in printed lists. */
  readonly name: string;
  readonly credentials: 'ignored' | 'optional' | 'required';
  /** They decide in this order, `recentLogin` last. */
  readonly guards: readonly Guard[];
  /** Why no service can have it. */
  readonly faults?: readonly string[];
  /** The caller as the handler receives it, once `refusalOf` has nothing against them. */
  readonly admit: (caller: Caller | undefined) => Admitted;
}

/**
 * Why this caller may not pass all of these; `undefined` when they may. Every other guard is decided before
 * a `recentLogin` (RFC 9470), which is decided only where there is a route to log in for.
 */
export function refusalOf(
  deciding: readonly { readonly access: Access<unknown> }[],
  caller: Caller | undefined,
  hasRoute: boolean,
): Refused | undefined {
  if (caller === undefined) {
    const isWanted = deciding.some(({ access }) => access.credentials === 'required');
    return isWanted ? refuse('no-credentials') : undefined;
  }

  const genuine = requireCaller(caller);
  let login: Refused | undefined;
  for (const { access } of deciding) {
    for (const guard of access.guards) {
      // A promise is no answer: of a guard that JavaScript made it would let everybody in.
      if (guard.passes(genuine) === true) continue;
      if (!isLogin(guard)) return guard.refused;

      login ??= guard.refused;
    }
  }
  // Choice: nobody is sent to log in again who would then lack something else.
  return hasRoute ? login : undefined;
}

const isLogin = ({ refused }: Guard) => refused.refusal.reason === 'login-insufficient';

/**
 * Everyone; credentials are ignored, and the handler gets no caller.
 *
 * @example get('/api/status', open, () => ({ status: 'ok' }))
 */
export const open: Access<undefined> = {
  name: 'open',
  credentials: 'ignored',
  guards: [],
  admit: () => undefined,
};

/**
 * Everyone; credentials that are present must be good, and then name the caller.
 *
 * @example get('/api/feed', optional, ({ caller }) => ({ for: caller?.subject ?? 'guest' }))
 */
export const optional: Access<Caller | undefined> = {
  name: 'optional',
  credentials: 'optional',
  guards: [],
  admit: (caller) => caller,
};

/**
 * Callers with a valid access token.
 *
 * @example get('/api/me', authenticated, ({ caller }) => ({ id: caller.subject }))
 */
export const authenticated: Access<Caller> = {
  name: 'authenticated',
  credentials: 'required',
  guards: [],
  admit: requireCaller,
};

/**
 * Callers with a valid access token that passes every guard; others with one are 403 (RFC 6750 §3.1), or 401
 * for a login. Throws a `TypeError` for two `recentLogin`.
 *
 * @example get('/api/orders', needs(scope('read:orders'), claimEquals('tenant', 'acme')), listOrders)
 */
export function needs(...guards: readonly [Guard, ...Guard[]]): Access<Caller> {
  if (guards.filter(isLogin).length > 1) throw new TypeError('a route has two recentLogin; make them one');

  // JavaScript lets a list that turned out empty stand here.
  const nothing = guards.length === 0 ? ['needs nothing; write authenticated, or a guard'] : [];
  return {
    name: guards.map((guard) => guard.name).join(', '),
    credentials: 'required',
    guards,
    faults: [...nothing, ...guards.flatMap(({ fault = [] }) => fault)],
    admit: requireCaller,
  };
}

function requireCaller(caller: Caller | undefined) {
  if (caller !== undefined && isGenuine(caller)) return caller;

  throw new TypeError('a caller that no sender check made');
}
