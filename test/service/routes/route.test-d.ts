/* The type of what a handler receives follows from its route. The compiler is the test: each marked line must
   be an error, or the type check fails. */
import { authenticated, needs, open, optional } from '../../../src/gate/rules/access.ts';
import { claimEquals, scope } from '../../../src/gate/rules/guards.ts';
import {
  del,
  get,
  patch,
  post,
  put,
  under,
  type PrefixRule,
  type Route,
  type RouteRequest,
  type Routes,
} from '../../../src/service/routes/route.ts';
import type { Caller } from '../../../src/verify/caller.ts';
import { is } from '../../support/same-type.ts';

const wantsCaller = ({ caller }: RouteRequest<Caller>) => ({ user: caller.subject });

const takesAny = ({ caller }: RouteRequest<Caller | undefined>) => ({ user: caller?.subject });

declare const toldToHandlers: keyof RouteRequest<Caller>;

export const allThatAHandlerIsTold = is<
  | 'caller'
  | 'parameters'
  | 'query'
  | 'body'
  | 'headers'
  | 'method'
  | 'clientAddress'
  | 'path'
  | 'signal'
  | 'traceparent'
  | 'nowMillis'
  | 'authorize'
>()(toldToHandlers);

declare const shownOfRoutes: keyof Route;

export const allThatARowShows = is<
  'method' | 'pattern' | 'access' | 'query' | 'body' | 'handler' | 'mounted'
>()(shownOfRoutes);

const both = needs(scope('read'), claimEquals('org', 'a1'));

export const routes = [
  // @ts-expect-error no caller on an open route
  get('/1', open, wantsCaller),
  // @ts-expect-error perhaps no caller on an optional route
  get('/2', optional, wantsCaller),
  get('/3', authenticated, wantsCaller),
  get('/4', both, wantsCaller),
  get('/5', optional, takesAny),
  get('/6', both, takesAny),
  // @ts-expect-error a body is an object
  get('/7', open, () => 'text'),
];

export const incomplete = [
  // @ts-expect-error a route has an access
  () => get('/8', takesAny),
  // @ts-expect-error a guarded route has a guard
  () => needs(),
  // @ts-expect-error a scope guard has a scope
  () => scope(),
  // @ts-expect-error a scope is a text
  () => scope(7),
  // @ts-expect-error a guard is not yet an access
  () => get('/9', scope('read'), takesAny),
  // @ts-expect-error nor is a text
  () => get('/10', 'authenticated', takesAny),
  // @ts-expect-error nor is a name of a scope a guard
  () => needs('read'),
];

export const writing = [
  // @ts-expect-error no caller on an open route, by whatever method
  () => post('/1', open, wantsCaller),
  // @ts-expect-error no caller on an open route
  () => put('/2', open, wantsCaller),
  // @ts-expect-error perhaps no caller on an optional route
  () => patch('/3', optional, wantsCaller),
  // @ts-expect-error perhaps no caller on an optional route
  () => del('/4', optional, wantsCaller),
];

const route = get('/api/x', open, takesAny);

export const served: readonly Routes[] = [
  { routes: [route], rules: [under('/api', authenticated), under('/', both)] },
  // @ts-expect-error a copy of a route is none
  { routes: [{ ...route, pattern: '/copied' }] },
  // @ts-expect-error a rule asks for a caller; an open rule would ask for nothing
  { routes: [route], rules: [under('/api', open)] },
  // @ts-expect-error nor does an optional one
  { routes: [route], rules: [under('/api', optional)] },
  // @ts-expect-error a rule has an access
  { routes: [route], rules: [under('/api')] },
  // @ts-expect-error an access is not yet a rule
  { routes: [route], rules: [both] },
  // @ts-expect-error a rule is no route
  { routes: [under('/api', both)] },
  // @ts-expect-error routes are a list
  { routes: route },
  // @ts-expect-error an object to serve has routes
  { rules: [under('/api', both)] },
  // @ts-expect-error routes stand side by side
  { routes: [[route]] },
];

export const changed = [
  () => {
    // @ts-expect-error a route stays as it was made
    route.access = open;
  },
  () => {
    // @ts-expect-error a rule stays as it was made
    under('/api', both).access = authenticated;
  },
];

const handler = () => ({});

const likeARoute = {
  method: 'GET',
  pattern: '/x',
  access: open,
  query: undefined,
  body: undefined,
  handler,
} as const;

// @ts-expect-error nor is an object with the members of a route
export const writtenRoute: Route = likeARoute;

// @ts-expect-error a route without an access is none
export const openRoute: Route = { ...likeARoute, access: undefined };

// @ts-expect-error nor is one with a guard in its place
export const guardedRoute: Route = { ...likeARoute, access: scope('read') };

// @ts-expect-error nor is a rule with a guard in its place
export const guardedRule: PrefixRule = { prefix: ['api'], access: scope('read') };

// @ts-expect-error a handler reads the caller that the pipeline checked; nothing can be passed off as one
export const forged: Caller = { subject: 'x', claims: {}, scopes: [], scopeText: null, claim: () => 1 };
