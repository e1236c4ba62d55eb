// A check of every route's access, by requests with tokens of a test issuer.
import type { Decide } from '../gate/decide.ts';
import { pathSegments } from '../verify/request/facts.ts';
import { STATUSES } from '../gate/replies/refusal-replies.ts';
import { authenticated, checkAccess, needs, type DecidedAccess, type Demands } from '../gate/rules/access.ts';
import type { AnyGuard, PlainGuard, Surroundings } from '../gate/rules/further.ts';
import { createRouter, isBelow, isMount } from '../service/routes/router.ts';
import { upstream, withAccess, withHandler, type Route, type Routes } from '../service/routes/route.ts';
import {
  createListeningService,
  createRouteReaders,
  OWN_ROUTES,
  problemsOf,
  type Kind,
} from '../service/create-service.ts';
import { readServiceOptions } from '../service/options.ts';
import { createTestIssuer, type TestIssuer } from './test-issuer.ts';

/**
 * Its message has a line for each response that does not fit its route's access.
 *
 * @example await assert.rejects(assertRouteMatrix({ routes: wrongRoutes }), RouteMatrixError);
 */
export class RouteMatrixError extends Error {}

/** A policy's own paths are not those of the service: they belong to the server behind it. */
const AS_POLICY: Kind = {
  ...OWN_ROUTES,
  isPolicy: true,
  createReaders: (served) => createRouteReaders(served, []),
};

/**
 * Requests every route without credentials, with an expired token, another scheme, another method, and tokens
 * with all scopes, no scopes, and all scopes but those of each guard. Besides scopes, tokens have only the
 * usual claims; the guards determine what to expect. Runs no handler, asks no decision, and tests routes of
 * `runForwardAuth` like any others. Rejects with a `RouteMatrixError` that lists every wrong response, or
 * with a `TypeError` if the routes cannot be served.
 *
 * @example test('every route asks for what it says', () => assertRouteMatrix({ routes }));
 */
export async function assertRouteMatrix(asked: Routes): Promise<void> {
  const isPolicy = [Object(asked).routes].flat().some((route) => route?.handler === upstream);
  const kind = isPolicy ? AS_POLICY : OWN_ROUTES;
  const problems = problemsOf(asked, kind);
  if (problems.length > 0) throw new TypeError(problems.join('\n'));

  const routes = asked.routes.map(withoutHandler);
  const rules = asked.rules?.map((rule) => withAccess(rule, withoutDecisions(rule.access)));
  const mismatches = await mismatchesOf({ routes, rules }, kind);
  if (mismatches.length > 0) throw new RouteMatrixError(mismatches.join('\n'));
}

async function mismatchesOf({ routes, rules = [] }: Routes, kind: Kind) {
  const issuer = createTestIssuer({ algorithm: 'ES256' });
  const values = readServiceOptions({ ...issuer.options, host: '127.0.0.1', port: 0 });
  const service = createListeningService({ routes, rules }, values, kind);
  const matchPath = createRouter([], rules);
  const { port } = await service.listen();

  // Is in no pattern, so that no more specific route takes the path.
  const text = crypto.randomUUID();

  const asked = routes.map(async (route) => {
    const path = route.pattern.replace(/\{\w+\}/g, text).replace(/\/\*\*$/, '') || '/';
    // A URL would rewrite these.
    const target = path.replace(/[\\\s]/g, encodeURIComponent);
    const ofRules = matchPath(path).demands;
    const demands = [...ofRules, route.access];

    const { ask, mismatches } = createAsk(route, `http://127.0.0.1:${port}${target}`);
    await askForCredentials(ask, demands, issuer);
    // Rules are checked before the method. Below a mount, every other method is its own.
    const refused = ofRules.some(isRequired) ? 401 : 405;
    if (!isMounted(path, routes)) await ask('another method', refused, {}, 'OPTIONS');
    await askForScopes(ask, demands, { ...issuer, ...kind, ...service, count: undefined });
    return mismatches;
  });
  try {
    return (await Promise.all(asked)).flat();
  } finally {
    await service.stop();
  }
}

function isMounted(path: string, routes: readonly Route[]) {
  const texts = pathSegments(path) ?? [];
  return routes.some((route) => route.mounted && isBelow(route.mounted.segments, texts));
}

/** No route has `OPTIONS`. */
const methodOf = (route: Route) => (isMount(route) ? 'OPTIONS' : route.method);

const withoutHandler = (route: Route): Route =>
  withHandler(route, () => ({}), withoutDecisions(route.access));

/** Decisions ask others, and are not about the token. */
function withoutDecisions<Admitted>(access: DecidedAccess<Admitted>) {
  const guards = access.guards.filter(isAtOnce);
  if (guards.length === access.guards.length) return access;

  const [first, ...others] = guards;
  return first ? needs(first, ...others) : authenticated;
}

const isAtOnce = (guard: AnyGuard): guard is PlainGuard<unknown> => guard.further?.wait === undefined;

const isRequired = ({ credentials }: DecidedAccess<unknown>) => credentials === 'required';

type Ask = ReturnType<typeof createAsk>['ask'];

function createAsk(route: Route, url: string) {
  const mismatches: string[] = [];

  async function ask(what: string, status: number | string, headers = {}, method = methodOf(route)) {
    // Otherwise `stop` would wait for the connection.
    const response = await fetch(url, { method, headers: { ...headers, connection: 'close' } });
    await response.arrayBuffer();
    if (response.status === status) return;

    const asked = `${method} ${route.pattern} (${route.access.name}) with ${what}`;
    mismatches.push(`${asked}: ${response.status} instead of ${status}`);
  }

  return { ask, mismatches };
}

async function askForCredentials(ask: Ask, demands: Demands, { bearer }: TestIssuer) {
  const refused = demands.every(({ credentials }) => credentials === 'ignored') ? 200 : 401;
  await ask('no credentials', demands.some(isRequired) ? 401 : 200);
  await ask('an expired token', refused, bearer({ exp: 1 }));
  await ask('another scheme', refused, { authorization: 'Basic eA==' });
}

const scopesOf = ({ refused }: AnyGuard) => refused.refusal.scopes ?? [];

/** What else is asked with. */
interface Asking extends TestIssuer, Surroundings {
  readonly decide: Decide;
}

async function askForScopes(ask: Ask, demands: Demands, asking: Asking) {
  const guards = demands.flatMap((access) => access.guards);
  const all = guards.flatMap(scopesOf);

  /** Asks the guards what to expect: only they know their claims and logins. */
  async function askWith(what: string, scopes: readonly string[]) {
    const headers = asking.bearer({ scope: scopes.join(' ') });
    const facts = { method: 'GET', path: '/', rawHeaders: ['Authorization', headers.authorization] };
    const { caller } = await asking.decide({ facts, demands: [authenticated], isServed: true });
    const admit = async () => caller && checkAccess(demands, caller, true, { facts }, asking);
    const status = await admit()
      .then((refused) => (refused ? STATUSES[refused.refusal.kind] : 200))
      .catch(() => 'a verdict, since a guard throws');
    await ask(what, status, headers);
  }

  await askWith('neither scopes nor claims', []);
  await askWith('all scopes', all);
  for (const guard of guards) {
    await askWith(
      `all scopes but for ${guard.name}`,
      all.filter((scope) => !scopesOf(guard).includes(scope)),
    );
  }
}
