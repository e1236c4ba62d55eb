// A check of every route's access, by requests with tokens of a test issuer.
import { systemClock } from '../verify/base/clock.ts';
import type { Caller } from '../verify/caller.ts';
import { pathSegments } from '../verify/request/facts.ts';
import { STATUSES } from '../gate/replies/challenge.ts';
import { authenticated, checkAccess, needs, type DecidedAccess } from '../gate/rules/access.ts';
import type { AnyGuard, PlainGuard } from '../gate/rules/further.ts';
import { parsePattern } from '../service/routes/pattern.ts';
import { createRouter, isBelow, isMount } from '../service/routes/router.ts';
import { upstream, withAccess, withHandler, type Route, type Routes } from '../service/routes/route.ts';
import { createGate, type Gate } from '../gate/create-gate.ts';
import { createService, OWN_ROUTES, problemsOf } from '../service/create-service.ts';
import { createTestIssuer, type TestIssuer } from './test-issuer.ts';

/**
 * Its message has a line for each response that does not fit its route's access.
 *
 * @example await assert.rejects(assertRouteMatrix({ routes: wrongRoutes }), RouteMatrixError);
 */
export class RouteMatrixError extends Error {}

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
  const isPolicy = [asked.routes].flat().some((route) => route?.handler === upstream);
  const problems = problemsOf(asked, { ...OWN_ROUTES, isPolicy });
  if (problems.length > 0) throw new TypeError(problems.join('\n'));

  const routes = asked.routes.map(withoutHandler);
  const rules = asked.rules?.map((rule) => withAccess(rule, withoutDecisions(rule.access)));
  const mismatches = await mismatchesOf(rules === undefined ? { routes } : { routes, rules });
  if (mismatches.length > 0) throw new RouteMatrixError(mismatches.join('\n'));
}

async function mismatchesOf({ routes, rules = [] }: Routes): Promise<string[]> {
  const issuer = createTestIssuer();
  const options = { ...issuer.options, host: '127.0.0.1', port: 0 };
  const service = createService({ routes, rules }, options);
  const gate = createGate(issuer.options);
  const matchPath = createRouter([], rules);
  const url = await service.listen();

  const text = freeText(routes);
  const mounts = routes.filter(isMount);

  const asked = routes.map(async (route) => {
    const path = route.pattern.replace(/\{\w+\}/g, text).replace(/\/\*\*$/, '') || '/';
    // A URL would rewrite these.
    const target = path.replace(/[\\\s]/g, encodeURIComponent);
    const texts = pathSegments(path) ?? [];
    const isMounted = mounts.some(({ mounted }) => isBelow(mounted.segments, texts));
    const demands = [...(matchPath(path)?.demands ?? []), route.access];

    const asker = new Asker(route, url + target, demands, issuer, gate);
    await asker.askForCredentials();
    // Rules are checked before the method. Below a mount, every other method is its own.
    const status = demands.length > 1 ? 401 : 405;
    if (!isMounted) await asker.ask('another method', status, {}, 'OPTIONS');
    await asker.askForScopes();
    return asker.mismatches;
  });
  try {
    return (await Promise.all(asked)).flat();
  } finally {
    gate.close();
    await service.stop();
  }
}

/** No route has `OPTIONS`. */
const methodOf = (route: Route) => (isMount(route) ? 'OPTIONS' : route.method);

/** Is in no pattern, so that no more specific route takes the path. */
function freeText(routes: readonly Route[], text = 'x'): string {
  const isTaken = routes.some(({ pattern }) => parsePattern(pattern)?.includes(text));
  return isTaken ? freeText(routes, `${text}x`) : text;
}

const withoutHandler = (route: Route): Route =>
  withHandler(route, () => ({}), withoutDecisions(route.access));

/** Decisions ask others, and are not about the token. */
function withoutDecisions<Admitted>(access: DecidedAccess<Admitted>) {
  const guards = access.guards.filter(isAtOnce);
  if (guards.length === access.guards.length) return access;

  const [first, ...others] = guards;
  return first === undefined ? authenticated : needs(first, ...others);
}

const isAtOnce = (guard: AnyGuard): guard is PlainGuard<unknown> => guard.further?.wait === undefined;

type Demands = readonly DecidedAccess<unknown>[];

const scopesOf = ({ refused }: AnyGuard) => refused.refusal.scopes ?? [];

const NO_FACTS = { method: 'GET', host: undefined, path: '/' };

const NOTHING_ELSE = { clock: systemClock, log: () => {}, count: undefined };

/** Requests one route. */
class Asker {
  readonly #route;
  readonly #url;
  readonly #demands;
  readonly #issuer;
  readonly #gate;
  readonly mismatches: string[] = [];

  constructor(route: Route, url: string, demands: Demands, issuer: TestIssuer, gate: Gate) {
    this.#route = route;
    this.#url = url;
    this.#demands = demands;
    this.#issuer = issuer;
    this.#gate = gate;
  }

  async ask(what: string, status: number | string, headers = {}, method = methodOf(this.#route)) {
    const { pattern, access } = this.#route;
    // Otherwise `stop` would wait for the connection.
    const response = await fetch(this.#url, { method, headers: { ...headers, connection: 'close' } });
    await response.arrayBuffer();
    if (response.status === status) return;

    const asked = `${method} ${pattern} (${access.name}) with ${what}`;
    this.mismatches.push(`${asked}: ${response.status} instead of ${status}`);
  }

  async askForCredentials() {
    const credentials = this.#demands.map((access) => access.credentials);
    const refused = credentials.every((one) => one === 'ignored') ? 200 : 401;
    await this.ask('no credentials', credentials.includes('required') ? 401 : 200);
    await this.ask('an expired token', refused, this.#issuer.bearer({ exp: 1 }));
    await this.ask('another scheme', refused, { authorization: 'Basic eA==' });
  }

  async askForScopes() {
    const guards = this.#demands.flatMap((access) => access.guards);
    const all = guards.flatMap(scopesOf);
    await this.#askWith('neither scopes nor claims', []);
    await this.#askWith('all scopes', all);
    for (const guard of guards) {
      const others = all.filter((scope) => !scopesOf(guard).includes(scope));
      await this.#askWith(`all scopes but for ${guard.name}`, others);
    }
  }

  async #askWith(what: string, scopes: readonly string[]) {
    const headers = this.#issuer.bearer({ scope: scopes.join(' ') });
    const rawHeaders = ['Host', 'localhost', 'Authorization', headers.authorization];
    const request = { method: 'GET', url: '/', rawHeaders };
    const { caller } = await this.#gate.check(request, authenticated);
    const verdictStatus = this.#refusalOf(caller, rawHeaders)
      .then((refused) => (refused ? STATUSES[refused.refusal.kind] : 200))
      .catch(() => 'a verdict, since a guard throws');
    await this.ask(what, await verdictStatus, headers);
  }

  /** Asks the guards what to expect: only they know their claims and logins. */
  async #refusalOf(caller: Caller | undefined, rawHeaders: readonly string[]) {
    const question = { facts: { ...NO_FACTS, rawHeaders } };
    return caller && checkAccess(this.#demands, caller, true, question, NOTHING_ELSE);
  }
}
