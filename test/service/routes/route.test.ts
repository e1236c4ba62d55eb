import assert from 'node:assert/strict';
import { test } from 'node:test';
import { anyScope, claimEquals, scope } from '../../../src/gate/rules/guards.ts';
import { Refused } from '../../../src/verify/base/refusal.ts';
import { authenticated, needs, open, optional } from '../../../src/gate/rules/access.ts';
import {
  del,
  get,
  patch,
  post,
  put,
  under,
  type PrefixRule,
  type RouteRequest,
  type Route,
} from '../../../src/service/routes/route.ts';
import { routesProblems } from '../../../src/service/routes/router.ts';
import { json, query } from '../../../src/service/routes/inputs.ts';
import type { Caller } from '../../../src/verify/caller.ts';
import { stackOf } from '../../support/call-lines.ts';
import { callerWith } from '../../support/caller.ts';
import { runRoute } from '../../support/route.ts';
import { schemaOf } from '../../support/schemas.ts';

const echo = <Admitted>({ caller, parameters, nowMillis }: RouteRequest<Admitted>) => ({
  caller,
  parameters,
  nowMillis,
});

const refused = (action: () => unknown, reason: string) =>
  assert.throws(action, (failure) => failure instanceof Refused && failure.refusal.reason === reason);

const never = () => assert.fail('the handler ran');

test('an open route gives its handler no caller, whatever the credentials', () => {
  const route = get('/x', open, echo);
  assert.deepEqual(runRoute(route, callerWith({}), { a: '1' }, 5), {
    caller: undefined,
    parameters: { a: '1' },
    nowMillis: 5,
  });
  assert.deepEqual([route.pattern, route.access.name, route.access.credentials], ['/x', 'open', 'ignored']);
});

test('an optional route gives its handler the caller or nothing', () => {
  const route = get('/x', optional, echo);
  const caller = callerWith({});
  assert.equal((runRoute(route, caller, {}, 5) as { caller: unknown }).caller, caller);
  assert.equal((runRoute(route, undefined, {}, 5) as { caller: unknown }).caller, undefined);
  assert.deepEqual([route.access.name, route.access.credentials], ['optional', 'optional']);
});

test('an authenticated route gives its handler the caller, and does not run it without one', () => {
  const caller = callerWith({});
  assert.equal(
    (runRoute(get('/x', authenticated, echo), caller, {}, 5) as { caller: unknown }).caller,
    caller,
  );
  refused(() => runRoute(get('/x', authenticated, never), undefined, {}, 5), 'no-credentials');
  assert.deepEqual([authenticated.name, authenticated.credentials], ['authenticated', 'required']);
});

const both = needs(scope('read'), claimEquals('org', 'a1'));

test('a guarded route runs its handler only when every guard passes', () => {
  const caller = callerWith({ scope: 'read', org: 'a1' });
  assert.equal((runRoute(get('/x', both, echo), caller, {}, 5) as { caller: unknown }).caller, caller);
  const route = get('/x', both, never);
  refused(() => runRoute(route, callerWith({ scope: 'read' }), {}, 5), 'claim-missing');
  refused(() => runRoute(route, callerWith({ org: 'a1' }), {}, 5), 'scope-missing');
  refused(() => runRoute(route, undefined, {}, 5), 'no-credentials');
});

test('a guarded route refuses with the first guard that does not pass', () => {
  refused(() => runRoute(get('/x', both, never), callerWith({})), 'scope-missing');
  const turned = needs(claimEquals('org', 'a1'), scope('read'));
  refused(() => runRoute(get('/x', turned, never), callerWith({})), 'claim-missing');
});

test('a guarded route names its guards', () => {
  assert.deepEqual([both.name, both.credentials], ['scope read, claim org equals a1', 'required']);
});

test('a route returns or throws what its handler does', async () => {
  const failure = new Error('x');
  assert.deepEqual(
    await runRoute(
      get('/x', open, async () => ({ a: 1 })),
      undefined,
      {},
      5,
    ),
    { a: 1 },
  );
  assert.throws(
    () =>
      runRoute(
        get('/x', open, () => {
          throw failure;
        }),
        undefined,
        {},
        5,
      ),
    failure,
  );
});

test('no route admits a look-alike of a caller', () => {
  const lookalike = Object.create(Object.getPrototypeOf(callerWith({ scope: 'read', org: 'a1' }))) as Caller;
  for (const access of [authenticated, optional, both]) {
    assert.throws(() => runRoute(get('/x', access, never), lookalike, {}, 5), {
      name: 'TypeError',
      message: 'the caller was not made by the sender check',
    });
  }
});

const wrongParts = (route: string) =>
  new TypeError(`${route}: takes only a handler and, before it, query() and json() or bytes() (not for GET)`);

test('a route with unknown parts, or without a handler, throws', () => {
  const schema = schemaOf((value) => ({ value }));
  const callable = Object.assign(() => ({}), schema);
  const make = post as (...parts: unknown[]) => Route;
  for (const parts of [
    [],
    [json()],
    [query(schema), json()],
    [schema, never],
    [callable, never],
    [json(), never, {}],
    [never, never],
    [null, never],
    [json(), json(), never],
  ]) {
    assert.throws(() => make('/x', open, ...parts), wrongParts('POST /x'));
  }
});

test('a route for GET that accepts a body throws [RFC 9110 §9.3.1]', () => {
  const make = get as (...parts: unknown[]) => Route;
  assert.throws(() => make('/x', open, json(), never), wrongParts('GET /x'));
});

const withoutAccess = (owner: string) =>
  new TypeError(
    `${owner}: needs an access, such as authenticated or needs(), of the same copy of the package`,
  );

test('a route or rule without an access, or with a guard in its place, throws, and names its method and path', () => {
  const rule = under as (...parts: unknown[]) => PrefixRule;
  for (const access of [undefined, null, {}, 'open', scope('a')] as never[]) {
    assert.throws(() => get('/x', access, never), withoutAccess('GET /x'));
    assert.throws(() => del('/x', access, never), withoutAccess('DELETE /x'));
    assert.throws(() => rule('/x', access), withoutAccess('under /x'));
  }
});

test('a route or rule with several faults throws for its access first', () => {
  const make = post as (...parts: unknown[]) => Route;
  assert.throws(() => make('/x/'), withoutAccess('POST /x/'));
  assert.throws(() => under('x', undefined as never), withoutAccess('under x'));
});

test('the errors of get() and under() name the line of the call in their stacks', () => {
  const names = { get, open, under };
  const routes = ['const routes = [', "  get('/a', open, () => ({})),", "  get('/b', () => ({})),", '];'];
  assert.match(stackOf(routes, names), /routes\.js:3:/);
  const rules = ["under('/a', open);", '', "under('b', open);"];
  assert.match(stackOf(rules, names), /routes\.js:3:/);
});

test('get, post, put, patch and del make routes with their method and the given inputs', () => {
  const taken = query(schemaOf((value) => ({ value })));
  const body = json();
  const give = () => ({});
  const routes = [
    get('/x', open, taken, give),
    ...[post, put, patch, del].map((make) => make('/x', open, taken, body, give)),
  ];
  assert.deepEqual(
    routes.map(({ method }) => method),
    ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'],
  );
  for (const route of routes) {
    assert.equal(route.query, taken);
    assert.equal(route.body, route.method === 'GET' ? undefined : body);
    assert.equal(route.handler, give);
    assert.deepEqual(routesProblems({ routes: [route] }), []);
  }
});

test('no route or rule can be made with an invalid guard or input', () => {
  const schema =
    'a schema must have "~standard" of version 1 with a function "validate"; options come second';
  const limit = 'json: limitBytes: must be a whole number from 1 to 16777216';
  for (const [message, make] of [
    ['scope a b: needs scopes, each as its own argument', () => get('/x', needs(scope('a b')), never)],
    ['scope a b: needs scopes, each as its own argument', () => under('/x', needs(scope('a b')))],
    [
      'claim é equals 1: needs 1 to 200 printable ASCII characters except ", \\ and =',
      () => get('/x', needs(scope('a'), claimEquals('é', 1)), never),
    ],
    ['any scope of : needs scopes, each as its own argument', () => post('/x', needs(anyScope('')), never)],
    [schema, () => post('/x', open, query({} as never), json({} as never), never)],
    [schema, () => post('/x', open, json({} as never, { limitBytes: 0 }), never)],
    [limit, () => post('/x', open, json(undefined, { limitBytes: 0 }), never)],
  ] as const) {
    assert.throws(make, new TypeError(message));
  }
});

test('no route or rule can be changed once it is made', () => {
  for (const made of [get('/x', open, echo), under('/x', authenticated)]) assert.ok(Object.isFrozen(made));
});

test('a copy of a route with an invalid access or handler is reported as no route', () => {
  const route = post('/x', open, json(), () => ({}));
  assert.deepEqual(routesProblems({ routes: [route] }), []);
  const why =
    'routes[0]: is not a route; make one with get, post, put, patch or del of the same copy of the package';
  const accesses = [undefined, null, {}, 'open', scope('a')].map((access) => ({ ...route, access }));
  const handlers = [undefined, null, {}].map((handler) => ({ ...route, handler }));
  for (const copy of [...accesses, ...handlers]) {
    assert.deepEqual(routesProblems({ routes: [copy as never] }), [why]);
  }
});
