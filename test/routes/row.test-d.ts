/* What a handler gets follows from its row: the compiler is the test. Each marked line must be an error, or
   the type check fails. */
import { authenticated, needs, open, optional } from '../../src/routes/access.ts';
import { claimEquals, scope } from '../../src/routes/guards.ts';
import { get, type RouteRequest } from '../../src/routes/row.ts';
import type { Caller } from '../../src/sender/caller.ts';

const wantsCaller = ({ caller }: RouteRequest<Caller>) => ({ user: caller.subject });

const takesAny = ({ caller }: RouteRequest<Caller | undefined>) => ({ user: caller?.subject });

const both = needs(scope('read'), claimEquals('org', 'a1'));

export const rows = [
  // @ts-expect-error no caller on an open row
  get('/1', open, wantsCaller),
  // @ts-expect-error perhaps no caller on an optional row
  get('/2', optional, wantsCaller),
  get('/3', authenticated, wantsCaller),
  get('/4', both, wantsCaller),
  get('/5', optional, takesAny),
  get('/6', both, takesAny),
  // @ts-expect-error a body is an object
  get('/7', open, () => 'text'),
];

export const incomplete = [
  // @ts-expect-error a row has an access
  () => get('/8', takesAny),
  // @ts-expect-error a guarded row has a guard
  () => needs(),
  // @ts-expect-error a scope guard has a scope
  () => scope(),
  // @ts-expect-error a scope is a text
  () => scope(7),
];

// @ts-expect-error a handler reads the caller that the pipeline checked; nothing can be passed off as one
export const forged: Caller = { subject: 'x', claims: {}, scopes: [], scopeText: null, claim: () => 1 };
