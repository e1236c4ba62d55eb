/* The test issuer and the route matrix: correct routes pass, and wrong ones are found. */
import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Server } from 'node:net';
import { test } from 'node:test';
import { decision } from '../src/decisions.ts';
import { MadeGuard } from '../src/gate/rules/guards.ts';
import {
  anyScope,
  authenticated,
  claimCheck,
  claimEquals,
  createService,
  get,
  json,
  mount,
  needs,
  open,
  optional,
  post,
  put,
  recentLogin,
  scope,
  under,
  upstream,
  type Guard,
  type Route,
  type Routes,
} from '../src/gatehouse.ts';
import { assertRouteMatrix, createProofKey, createTestIssuer, RouteMatrixError } from '../src/testing.ts';

const never = () => assert.fail('a handler ran');

const ROUTES: readonly Route[] = [
  get('/open', open, never),
  get('/optional', optional, never),
  get('/mine/{id}', authenticated, never),
  post('/mine/{id}', needs(scope('write')), json(), never),
  get('/fresh', needs(recentLogin({ maxAgeSeconds: 60 })), never),
  post('/fresh', needs(recentLogin({ acr: ['mfa'] }), scope('write')), never),
  get('/both', needs(scope('read'), anyScope('read', 'all')), never),
  put('/both', needs(scope('write'), claimEquals('tenant', 'acme')), never),
];

test('the route matrix passes for correct routes, and runs no handler', async () => {
  await assertRouteMatrix({ routes: ROUTES });
  await assertRouteMatrix({ routes: ROUTES, rules: [under('/mine', needs(scope('admin')))] });
  await assertRouteMatrix({ routes: ROUTES, rules: [under('/mine', needs(recentLogin({ acr: ['mfa'] })))] });
  await assertRouteMatrix({
    routes: ROUTES,
    rules: [under('/mine', authenticated), under('/mine/x', needs(scope('admin')))],
  });
});

/** What the matrix sends: methods, paths and schemes. */
async function sentFor(served: Routes): Promise<string[]> {
  const sent: string[] = [];

  const note = (message: unknown) => {
    const { method, path, headers } = (message as { request: Record<string, unknown> }).request;
    const [, scheme = 'nothing'] = /authorization[:,]\s*(\w+)/i.exec(String(headers)) ?? [];
    sent.push(`${method} ${path} with ${scheme}`);
  };

  subscribe('undici:request:create', note);
  try {
    await assertRouteMatrix(served);
  } finally {
    unsubscribe('undici:request:create', note);
  }
  return sent.sort();
}

test('the route matrix asks the guards themselves what to expect, not the decision that it tests', async () => {
  const passes = () => /\bdecide\b/.test(String(new Error().stack));
  const lax = new MadeGuard('scope read', passes, scope('read').refused, undefined);
  await assert.rejects(assertRouteMatrix({ routes: [get('/a', needs(lax), never)] }), (failure: Error) => {
    assert.ok(failure instanceof RouteMatrixError);
    assert.match(failure.message, /^GET \/a \(scope read\) with all scopes: 200 instead of 403$/m);
    return true;
  });
});

test('the route matrix asks a route without credentials, with a wrong scheme and method, and with tokens', async () => {
  assert.deepEqual(await sentFor({ routes: [get('/a', needs(scope('x', 'y'), scope('z')), never)] }), [
    'GET /a with Basic',
    ...Array.from({ length: 5 }, () => 'GET /a with Bearer'),
    'GET /a with nothing',
    'OPTIONS /a with nothing',
  ]);
});

test('the route matrix asks a mount with one method, since all are its own', async () => {
  const sent = await sentFor({ routes: [mount('/m', authenticated, never), get('/m/a', open, never)] });
  assert.deepEqual(
    sent.filter((line) => / \/m with nothing$/.test(line)),
    ['OPTIONS /m with nothing'],
  );
  assert.ok(!sent.includes('OPTIONS /m/a with nothing'));
  const beside = await sentFor({ routes: [mount('/m', open, never), get('/a', open, never)] });
  assert.ok(beside.includes('OPTIONS /a with nothing'));
});

test('the route matrix listens on loopback alone, since its tokens pass there', async ({ mock }) => {
  const listening = mock.method(Server.prototype, 'listen');
  await assertRouteMatrix({ routes: [get('/a', open, never)] });
  assert.deepEqual(
    listening.mock.calls.map(({ arguments: [options] }) => options),
    [{ port: 0, host: '127.0.0.1' }],
  );
});

test('the route matrix tells a scope of one guard from those of all', async () => {
  const seen: string[][] = [];

  const noting = claimCheck('seen', (claim) => {
    seen.push(String(claim('scope')).split(' '));
    return true;
  });
  await assertRouteMatrix({ routes: [get('/a', needs(noting, scope('x', 'y'), scope('z')), never)] });
  const lists = new Set(seen.map((scopes) => scopes.join()));
  assert.deepEqual([...lists].sort(), ['', 'x,y', 'x,y,z', 'z']);
});

test('the route matrix lists a guard that throws for some token, with the other wrong responses', async () => {
  const hasRole = claimCheck('an editor', (claim) => (claim('roles') as string[]).includes('editor'));
  const routes = [get('/edit', needs(hasRole), never), get('/read', needs(scope('read')), never)];
  await assert.rejects(assertRouteMatrix({ routes }), (error: Error) => {
    assert.ok(error instanceof RouteMatrixError);
    const lines = error.message.split('\n');
    assert.deepEqual([lines.length, lines.filter((line) => line.startsWith('GET /edit ')).length], [3, 3]);
    assert.match(
      lines[0]!,
      /with neither scopes nor claims: 500 instead of a verdict, since a guard throws$/,
    );
    return true;
  });
});

test('the route matrix asks each route at its own path, where a URL would rewrite it', async () => {
  await assertRouteMatrix({
    routes: [get('/a\\b\\c', authenticated, never), get('/c ', authenticated, never)],
  });
});

test('the route matrix asks each route at a path that no more specific route takes', async () => {
  const routes = [
    get('/mine/{id}', authenticated, never),
    get('/mine/x', open, never),
    get('/mine/%78x', needs(scope('a')), never),
    get('/{a}/{b}', needs(scope('b')), never),
    put('/mine/x', optional, json(), never),
  ];
  await assertRouteMatrix({ routes });
  await assertRouteMatrix({ routes: routes.toReversed(), rules: [under('/mine', needs(scope('c')))] });
});

test('the route matrix asks a mount at / under the rules of /', async () => {
  const routes = [mount('/', open, never)];
  await assertRouteMatrix({ routes, rules: [under('/', authenticated)] });
});

test('the route matrix passes for guards that pass a token without claims', async () => {
  const isFree = claimCheck('not blocked', (claim) => claim('blocked') !== true);
  await assertRouteMatrix({
    routes: [get('/free', needs(isFree), never), get('/both', needs(isFree, scope('read')), never)],
  });
});

test('the route matrix asks no decision, neither of a route nor of a rule', async () => {
  const asked: string[] = [];
  const ask = (what: string) => decision(what, () => asked.push(what) === 0);
  await assertRouteMatrix({
    routes: [get('/a', needs(scope('read'), ask('may read')), never), get('/b', needs(ask('may')), never)],
    rules: [under('/a', needs(ask('may enter'))), under('/b', needs(scope('b'), ask('may do b')))],
  });
  assert.deepEqual(asked, []);
});

test('the route matrix asks with the scopes of each guard that stands beside a decision', async () => {
  const guards = [scope('x', 'y'), scope('z')] as const;
  const sentTo = (access: Route['access']) => sentFor({ routes: [get('/a', access, never)] });
  const beside = await sentTo(needs(...guards, decision('may', never)));
  assert.deepEqual(beside, await sentTo(needs(...guards)));
});

test('the route matrix takes a policy of runForwardAuth like any routes', async () => {
  const routes = [get('/orders/{id}', needs(scope('read')), upstream), post('/orders', open, upstream)];
  await assertRouteMatrix({ routes });
  const mixed = [...routes, get('/other', open, () => ({}))];
  await assert.rejects(assertRouteMatrix({ routes: mixed }), { name: 'TypeError' });
});

test("the route matrix takes routes of a policy that have the names of the service's own [§19]", async () => {
  const routes = [
    get('/healthz', open, upstream),
    get('/readyz', needs(scope('read')), upstream),
    post('/forward-auth', authenticated, upstream),
  ];
  await assertRouteMatrix({ routes });
  await assertRouteMatrix({ routes, rules: [under('/readyz', authenticated)] });
  const own = [get('/healthz', open, never)];
  await assert.rejects(
    assertRouteMatrix({ routes: own }),
    /matches \/healthz, which the service serves itself/,
  );
});

test('the route matrix expects that a rule refuses another method only if it needs a token', async () => {
  const routes = [get('/a', needs(scope('x')), never), get('/b', open, never)];
  // In JavaScript, a rule may have any access.
  const lax = [open, optional] as unknown as (typeof authenticated)[];
  for (const access of lax) await assertRouteMatrix({ routes, rules: [under('/', access)] });
  await assertRouteMatrix({ routes, rules: [under('/', lax[1]!), under('/', authenticated)] });
});

test('the route matrix rejects invalid routes', async () => {
  for (const routes of [[{}], [null], undefined, [get('/a', open, never), get('/a', open, never)]]) {
    await assert.rejects(assertRouteMatrix({ routes } as Routes), { name: 'TypeError' });
  }
  const message = 'routes and rules: must be lists';
  await assert.rejects(assertRouteMatrix(undefined as never), { name: 'TypeError', message });
});

/** A guard whose result differs between the matrix, which asks first, and the service. */
function fickle(first: boolean, like: Guard = scope('read')): Guard {
  let asked = 0;

  const passes = () => {
    asked += 1;
    return (asked % 2 === 1) === first;
  };

  return new MadeGuard(like.name, passes, like.refused, undefined);
}

test('the route matrix names every route that responds wrongly, and the request', async () => {
  const login = recentLogin({ acr: ['mfa'] });
  const routes = [
    get('/lax', needs(fickle(false)), never),
    get('/strict', needs(fickle(true)), never),
    get('/stale', needs(fickle(true, login)), never),
  ];
  await assert.rejects(assertRouteMatrix({ routes }), (failure) => {
    assert.ok(failure instanceof RouteMatrixError);
    assert.deepEqual(failure.message.split('\n'), [
      'GET /lax (scope read) with neither scopes nor claims: 200 instead of 403',
      'GET /lax (scope read) with all scopes: 200 instead of 403',
      'GET /lax (scope read) with all scopes but for scope read: 200 instead of 403',
      'GET /strict (scope read) with neither scopes nor claims: 403 instead of 200',
      'GET /strict (scope read) with all scopes: 403 instead of 200',
      'GET /strict (scope read) with all scopes but for scope read: 403 instead of 200',
      'GET /stale (login acr_values="mfa") with neither scopes nor claims: 401 instead of 200',
      'GET /stale (login acr_values="mfa") with all scopes: 401 instead of 200',
      'GET /stale (login acr_values="mfa") with all scopes but for login acr_values="mfa": 401 instead of 200',
    ]);
    return true;
  });
});

test('a test issuer creates tokens, bound tokens and proofs that a service accepts at once', async (t) => {
  const issuer = createTestIssuer();
  const route = get('/who', authenticated, ({ caller }) => ({ who: caller.subject, scopes: caller.scopes }));
  const settings = { ...issuer.options, dpopMode: 'ALLOWED', host: '127.0.0.1', port: 0 } as const;
  const service = createService({ routes: [route] }, settings);
  t.after(() => service.stop());
  const url = `${await service.listen()}/who`;

  const ask = async (headers: Record<string, string>) => {
    const response = await fetch(url, { headers });
    return [response.status, await response.json()];
  };

  const claims = { sub: 'ada', scope: 'read' };
  assert.deepEqual(await ask(issuer.bearer(claims)), [200, { who: 'ada', scopes: ['read'] }]);

  const key = createProofKey();
  const token = issuer.boundToken(key, claims);
  const dpop = issuer.proof(key, { method: 'GET', url }, token);
  assert.deepEqual(await ask({ authorization: `DPoP ${token}`, dpop }), [
    200,
    { who: 'ada', scopes: ['read'] },
  ]);
  assert.equal((await ask({ authorization: `Bearer ${token}` }))[0], 401);
  assert.equal((await ask(createTestIssuer().bearer(claims)))[0], 401);
});
