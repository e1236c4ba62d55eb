/* Every route of every profile with every kind of credentials: who is admitted and who is not. New routes and
   files of routes are tested without an edit here. Handlers do not run, so what they would respond does not
   matter. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { REFUSALS } from '../../../src/verify/base/refusal.ts';
import { parametersText } from '../../../src/gate/replies/reply.ts';
import { needs, type DecidedAccess } from '../../../src/gate/rules/access.ts';
import { MadeGuard, scope } from '../../../src/gate/rules/guards.ts';
import type { AnyGuard, Wait } from '../../../src/gate/rules/further.ts';
import { decision } from '../../../src/options/decisions.ts';
import {
  get,
  post,
  under,
  withAccess,
  withHandler,
  type PrefixRule,
  type Route,
} from '../../../src/service/routes/route.ts';
import { clock, settingsWith, tokenWith } from '../../support/caller.ts';
import type { Response, Ask } from '../../support/client.ts';
import { claimsForAll, demandOf, passes, type Claims } from '../../support/demands.ts';
import { pathSlips, sameSpellings } from '../../support/spellings.ts';
import { startRoutes, type RunningRoutes } from '../../support/routes.ts';
import { ALL_ROUTES, type NamedRoutes } from '../../support/all-routes.ts';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND'];
const BARE = 'Bearer realm="api"';

const INSUFFICIENT =
  /^Bearer realm="api", error="insufficient_scope", error_description="([^"]+)"(?:, scope="([^"]+)")?$/;

interface Case extends NamedRoutes {
  /** How the issuer of the tokens writes these claims. */
  readonly asIssued: (claims: Claims) => Claims;
  /** The audience of another issuer, if there is one. */
  readonly othersAudience: string;
}

const TWO_ISSUERS = {
  ISSUERS: 'partner',
  ISSUER_PARTNER_DOMAIN: 'partner.example',
  ISSUER_PARTNER_AUDIENCE: 'orders-api',
  ISSUER_PARTNER_SCOPE_CLAIM: 'scp',
  ISSUER_PARTNER_CLAIM_NAMESPACE: 'https://partner.example/claims/',
};

/** Common to all issuers. */
const UNNAMED = ['exp', 'acr', 'auth_time'];

/** The claims under the partner's names, and none under those of the first issuer. */
function asPartnerIssues({ scope: scp, ...others }: Claims): Claims {
  const named = Object.entries(others).map(([name, value]) => [
    UNNAMED.includes(name) ? name : `${TWO_ISSUERS.ISSUER_PARTNER_CLAIM_NAMESPACE}${name}`,
    value,
  ]);
  const parties = { iss: 'https://partner.example/', aud: TWO_ISSUERS.ISSUER_PARTNER_AUDIENCE };
  return { ...parties, scope: 'of no meaning here', scp, ...Object.fromEntries(named) };
}

const NEVER = decision('may do this', () => assert.fail('a real engine is asked'));
const NOR_THIS = decision('may do that', () => assert.fail('a real engine is asked'));

/** No profile has a decision. */
const DECIDED: NamedRoutes = {
  name: 'routes with decisions',
  environment: {},
  served: {
    routes: [
      get('/decided', needs(NEVER), () => ({})),
      post('/decided/{id}', needs(scope('write'), NEVER, NOR_THIS), () => ({})),
      get('/ruled/{id}', needs(scope('read')), () => ({})),
    ],
    rules: [under('/ruled', needs(NOR_THIS))],
  },
};

/**
 * The routes of each profile with one issuer, and with two, with tokens of each. The bodies of `ERROR_DETAIL`
 * do not depend on the route: those of profile B stand for all.
 */
const CASES = [...ALL_ROUTES, DECIDED].flatMap((one): readonly Case[] => {
  const alone: Case = { ...one, asIssued: (claims) => claims, othersAudience: 'orders-api' };
  const two: Case = {
    ...alone,
    name: `${one.name} with the tokens of the first of two issuers`,
    environment: { ...one.environment, ...TWO_ISSUERS },
  };
  const second: Case = {
    ...two,
    name: `${one.name} with the tokens of the second of two issuers`,
    asIssued: asPartnerIssues,
    othersAudience: 'https://api.example',
  };
  const cases = [alone, two, second];
  if (one.environment.PROFILE !== 'B') return cases;

  const environment = { ...one.environment, ERROR_DETAIL: 'true' };
  return [...cases, { ...alone, name: `${one.name} in detail`, environment }];
});

/** A path that matches the pattern, with a parameter that needs an escape. */
const pathOf = (pattern: string) => pattern.replace(/\{\w+\}/g, 'any%2Fthing');

/** `/` has none. */
const partsOf = (path: string) => (path === '/' ? [] : path.slice(1).split('/'));

function segmentsOf(path: string): readonly string[] | undefined {
  try {
    return partsOf(path).map(decodeURIComponent);
  } catch {
    return undefined;
  }
}

/** Whether any route has this path, by RFC 3986 §2.4. */
function isKnown(routes: readonly Route[], path: string): boolean {
  const segments = segmentsOf(path);
  return routes.some(({ pattern }) => {
    const parts = partsOf(pattern);

    const isMatch = (part: string, index: number) => {
      const segment = segments?.[index] ?? '';
      return part.startsWith('{') ? !['', '.', '..'].includes(segment) : decodeURIComponent(part) === segment;
    };

    return parts.length === segments?.length && parts.every(isMatch);
  });
}

const covers = ({ prefix }: PrefixRule, path: string) =>
  prefix.every((text, index) => segmentsOf(path)?.[index] === text);

const isDecision = ({ further }: AnyGuard) => further?.wait !== undefined;

/** The names of decisions that refuse now. */
const refusing = new Set<string>();

/** Stands in for a decision, so that no test asks an engine. */
function standInFor({ name, refused }: AnyGuard): AnyGuard {
  const wait: Wait = (caller, question, surroundings, [next, ...others]) =>
    refusing.has(name) ? refused : next?.(caller, question, surroundings, others);

  return new MadeGuard(name, () => false, refused, { wait });
}

function withStandIns<Admitted>(access: DecidedAccess<Admitted>): DecidedAccess<Admitted> {
  if (!access.guards.some(isDecision)) return access;

  const guards = access.guards.map((guard) => (isDecision(guard) ? standInFor(guard) : guard));
  return Reflect.apply(needs, undefined, guards);
}

const isLogin = ({ refused }: AnyGuard) => refused.refusal.kind === 'insufficient_user_authentication';

/** In the order in which the rules and the route are checked. */
const decided = (guards: readonly AnyGuard[]) => [
  ...guards.filter((guard) => !isLogin(guard)),
  ...guards.filter(isLogin),
];

for (const { name, served, environment, asIssued, othersAudience } of CASES) {
  describe(name, () => {
    const routes = served.routes.map((route) =>
      withHandler(route, route.handler, withStandIns(route.access)),
    );
    const rules = (served.rules ?? []).map((rule) => withAccess(rule, withStandIns(rule.access)));
    const { errorDetail } = settingsWith(environment);
    /** The routes that have admitted requests, once for each. */
    const admissions: Route[] = [];
    let service: RunningRoutes;

    before(async () => {
      const watched = routes.map((route) =>
        withHandler(route, () => {
          admissions.push(route);
          return { admitted: route.pattern };
        }),
      );
      service = await startRoutes({
        routes: watched,
        policy: rules,
        environment: { ...environment, IDP_DPOP_MODE: 'DISABLED' },
      });
    });
    after(() => service.stop());

    for (const route of routes) describe(`${route.method} ${route.pattern}`, () => testRoute(route));

    function testRoute(route: Route): void {
      const { method, pattern, access } = route;
      const path = pathOf(pattern);
      const covering = rules.filter((one) => covers(one, path));
      const isRuled = covering.length > 0;
      const all = decided([...covering, route].flatMap((one) => one.access.guards));
      const decisions = all.filter(isDecision);
      const named = new Map(all.filter((one) => !isDecision(one)).map((one) => [one.name, one]));
      const guards = [...named.values()];
      const held = () => claimsForAll(guards);
      /** False if no claims are known that pass a guard of free form. */
      const isOpenable = guards.every((guard) => passes(guard, held()));
      const needsCaller = access.credentials === 'required' || isRuled;
      const readsToken = access.credentials !== 'ignored' || isRuled;

      const token = (claims: Claims) => tokenWith(asIssued(claims));
      const good = () => token(held());
      const expired = () => token({ ...held(), exp: Math.floor(clock.now() / 1000) });
      const forged = () => good().replace(/.{8}$/, (end) => (end === 'AAAAAAAA' ? 'BBBBBBBB' : 'AAAAAAAA'));

      /** Sends the route's method, and for GET also HEAD, and asserts that they respond alike. */
      async function ask(request: Ask = {}): Promise<Response> {
        const response = await service.ask(path, { method, ...request });
        const { 'cache-control': cacheControl, 'x-content-type-options': sniffing } = response.headers;
        assert.deepEqual([cacheControl, sniffing], ['no-store', 'nosniff']);
        if (method !== 'GET') return response;

        const head = await service.ask(path, { ...request, method: 'HEAD' });
        const { date: _, ...fields } = response.headers;
        const { date: __, ...headFields } = head.headers;
        assert.deepEqual([head.status, headFields, head.text], [response.status, fields, '']);
        return response;
      }

      async function admits(request: Ask): Promise<void> {
        const before = admissions.length;
        const response = await ask(request);
        const admitted = admissions.slice(before);
        assert.ok(admitted.length > 0 && admitted.every((one) => one === route));
        assert.deepEqual([response.status, response.challenges], [200, []]);
      }

      async function refuses(request: Ask, error: string, challenge: string): Promise<void> {
        const before = admissions.length;
        const response = await ask(request);
        assert.deepEqual([response.status, response.challenges], [401, [challenge]]);
        const message =
          errorDetail && error === 'invalid_token'
            ? 'The access token is invalid or has expired'
            : 'Authentication required';
        assert.equal(response.text, JSON.stringify({ error, message }));
        assert.equal(admissions.length, before);
      }

      const invalid = (description: string) =>
        `${BARE}, error="invalid_token", error_description="${description}"`;

      /** 403 with the guard's description; 401 for a login. */
      async function refusesAs({ refused: { refusal } }: AnyGuard, claims: Claims): Promise<void> {
        const response = await ask({ token: token(claims) });
        if (refusal.reason === 'login-insufficient') {
          assert.deepEqual([response.status, response.body.error], [401, refusal.kind]);
          assert.ok(response.challenges[0]?.includes(parametersText(refusal.demands ?? {})));
          return;
        }
        assert.equal(response.status, 403);
        const [, description = '', scope] = INSUFFICIENT.exec(response.challenges.join('|')) ?? [];
        const { scopes } = refusal;
        assert.equal(description, 'description' in refusal && refusal.description);
        assert.equal(scope, scopes?.join(' '));
        const body = errorDetail
          ? { error: 'forbidden', message: `Missing permission: ${description}`, required_scopes: scopes }
          : { error: 'insufficient_scope', message: description };
        assert.equal(response.text, JSON.stringify(body));
      }

      if (isOpenable) test('admits a caller who passes every guard', () => admits({ token: good() }));

      if (needsCaller) {
        test('refuses a caller without credentials', () => refuses({}, 'unauthorized', BARE));

        test('refuses credentials of another scheme', () =>
          refuses({ headers: { Authorization: 'Basic dTpw' } }, 'unauthorized', BARE));

        test('refuses a token in the query, even for a User-Agent that names a probe [RFC 9700, G3, G6]', async () => {
          const headers = { 'User-Agent': 'kube-probe/1.30' };
          const response = await service.ask(`${path}?access_token=${good()}`, { method, headers });
          assert.deepEqual([response.status, response.body.error], [401, 'unauthorized']);
        });
      } else {
        test('admits a caller without credentials', () => admits({}));
      }

      if (readsToken) {
        test('refuses an expired token', () =>
          refuses({ token: expired() }, 'invalid_token', invalid(REFUSALS.invalid_token.expired)));

        test('refuses a forged signature [D6]', () =>
          refuses(
            { token: forged() },
            'invalid_token',
            invalid(REFUSALS.invalid_token['signature-mismatch']),
          ));

        test('refuses a token of an untrusted issuer [D2]', () => {
          const stranger = tokenWith({ ...asIssued(held()), iss: 'https://stranger.example/' });
          return refuses(
            { token: stranger },
            'invalid_token',
            invalid(REFUSALS.invalid_token['issuer-mismatch']),
          );
        });

        test('refuses a token for the audience of another issuer [D11]', () => {
          const forOther = tokenWith({ ...asIssued(held()), aud: othersAudience });
          return refuses(
            { token: forOther },
            'invalid_token',
            invalid(REFUSALS.invalid_token['audience-mismatch']),
          );
        });

        test('refuses two Authorization fields', async () => {
          const response = await ask({
            headers: { Authorization: [`Bearer ${good()}`, `Bearer ${good()}`] },
          });
          assert.deepEqual([response.status, response.body.error], [400, 'invalid_request']);
        });
      } else {
        test('ignores credentials, however bad', async () => {
          const values = ['', 'Basic x', 'Bearer', `Bearer ${expired()}`, ['Bearer a', 'Bearer b']];
          for (const Authorization of values) await admits({ headers: { Authorization } });
        });
      }

      for (const guard of isOpenable ? guards : []) {
        const others = () => claimsForAll(guards.filter((one) => one !== guard));
        for (const [index, missing] of (demandOf(guard)?.missing ?? []).entries()) {
          test(`refuses ${JSON.stringify(missing)} for the guard "${guard.name}"`, async () => {
            const claims = { ...others(), ...demandOf(guard)?.missing[index] };
            assert.ok(!passes(guard, claims));
            await refusesAs(guards.find((one) => !passes(one, claims)) ?? guard, claims);
          });
        }
      }

      for (const { name, refused } of isOpenable ? decisions : []) {
        test(`refuses what the decision "${name}" refuses, and asks it only if no guard refuses`, async () => {
          refusing.add(name);
          try {
            const before = admissions.length;
            const { status, challenges } = await ask({ token: good() });
            const { refusal } = refused;
            const description = `error_description="${'description' in refusal && refusal.description}"`;
            assert.deepEqual([status, challenges.length, admissions.length], [403, 1, before]);
            assert.ok(challenges[0]?.includes(description), challenges[0]);
            if (guards.length > 0) await refusesAs(guards[0]!, {});
          } finally {
            refusing.delete(name);
          }
        });
      }

      const whom = isRuled ? 'only for callers that the policy admits' : 'before it reads a token';
      test(`answers 405 to any other method ${whom}`, async () => {
        const own = routes.filter((one) => isKnown([one], path)).map((one) => one.method);
        // Less specific routes have their methods there too.
        const methods = new Set(own.flatMap((one) => (one === 'GET' ? ['GET', 'HEAD'] : [one])));
        const allowed = [...methods].sort();
        const refused = [405, allowed, 'method_not_allowed'];
        for (const other of METHODS.filter((one) => !allowed.includes(one))) {
          for (const [request, policed] of [
            [{ token: good() }, refused],
            [{ token: expired() }, [401, undefined, 'invalid_token']],
            [{}, [401, undefined, 'unauthorized']],
          ] as const) {
            const { status, headers, body } = await service.ask(path, { method: other, ...request });
            const expected = isRuled ? policed : refused;
            // The response to HEAD has no body.
            const error = other === 'HEAD' ? expected[2] : body.error;
            assert.deepEqual([status, headers.allow?.split(', ').sort(), error], expected, other);
          }
        }
      });

      test('is not found under another spelling, whatever the credentials [G2]', async () => {
        const elsewhere = (slip: string) => !isKnown(routes, slip) && !rules.some((one) => covers(one, slip));
        const stale = expired();
        const asked = pathSlips(path)
          .filter(elsewhere)
          .map(async (slip) => [slip, await service.ask(slip, { method, token: stale })] as const);
        for (const [slip, { status, body, challenges }] of await Promise.all(asked)) {
          assert.deepEqual([status, body.error, challenges], [404, 'not_found', []], slip);
        }
      });

      test('is found with encoded letters and with a query', async () => {
        for (const spelling of sameSpellings(path)) {
          const before = admissions.length;
          const { status } = await service.ask(spelling, { method });
          assert.equal(status, needsCaller ? 401 : 200, spelling);
          await service.ask(spelling, { method, token: good() });
          assert.equal(admissions.length > before, isOpenable || !needsCaller, spelling);
        }
      });
    }
  });
}
