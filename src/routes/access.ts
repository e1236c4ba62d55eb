// Access: who may use a row. Promises: what is admitted is a Caller that a sender check made, or nobody where
// the row says so. Does not read credentials: service/front.ts does, where an access asks for them.
import { refuse } from '../base/refusal.ts';
import { isGenuine, type Caller } from '../sender/caller.ts';
import type { Guard } from './guards.ts';

/** Who may use a row. `Admitted` is what the handler then receives as `caller`. */
export interface Access<Admitted> {
  /** As it stands in printed tables. */
  readonly name: string;
  readonly credentials: 'ignored' | 'optional' | 'required';
  /** In the order in which they decide. */
  readonly guards: readonly Guard[];
  /** Why no table can have it. */
  readonly faults?: readonly string[];
  /** The caller as the handler receives it. Throws `Refused` when a required caller or a guard is missing. */
  readonly admit: (caller: Caller | undefined) => Admitted;
  /** The same without its `recentLogin`, if it has one: what of a rule decides before the row does. */
  readonly beforeLogin?: Access<Caller> | undefined;
}

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
  admit: (caller) => caller && requireCaller(caller),
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
  const logins = guards.filter(({ refused }) => refused.refusal.reason === 'login-insufficient');
  if (logins.length > 1) throw new TypeError('a row has two recentLogin; make them one');

  // JavaScript lets a list that turned out empty stand here.
  const nothing = guards.length === 0 ? ['needs nothing; write authenticated, or a guard'] : [];
  // Choice: nobody is sent to log in again who would then lack something else.
  const others = guards.filter((guard) => guard !== logins[0]);
  const ordered = others.concat(logins);

  return {
    name: guards.map((guard) => guard.name).join(', '),
    credentials: 'required',
    guards: ordered,
    faults: [...nothing, ...guards.flatMap(({ fault = [] }) => fault)],
    admit: (caller) => {
      const admitted = requireCaller(caller);
      for (const guard of ordered) {
        // A promise is no answer: of a guard that JavaScript made it would let everybody in.
        if (guard.passes(admitted) !== true) throw guard.refused;
      }
      return admitted;
    },
    beforeLogin: logins.length > 0 ? allOf(others) : undefined,
  };
}

const allOf = ([first, ...more]: readonly Guard[]) =>
  first === undefined ? authenticated : needs(first, ...more);

function requireCaller(caller: Caller | undefined) {
  if (caller === undefined) throw refuse('no-credentials');
  if (!isGenuine(caller)) throw new TypeError('a caller that no sender check made');

  return caller;
}
