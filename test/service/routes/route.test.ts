import assert from 'node:assert/strict';
import { test } from 'node:test';
import { claimEquals, scope } from '../../../src/gate/guards.ts';
import { Refused } from '../../../src/verify/base/refusal.ts';
import { authenticated, needs, open, optional } from '../../../src/gate/access.ts';
import {
  del,
  get,
  patch,
  post,
  put,
  routeProblems,
  under,
  type PrefixRule,
  type RouteRequest,
  type Route,
} from '../../../src/service/routes/route.ts';
import { json, query } from '../../../src/service/routes/inputs.ts';
import type { Caller } from '../../../src/verify/caller.ts';
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

test('a route with unknown parts, or without a handler, cannot be served', () => {
  const schema = schemaOf((value) => ({ value }));
  const callable = Object.assign(() => ({}), schema);
  const make = post as (...parts: unknown[]) => Route;
  for (const parts of [
    [],
    [json()],
    [schema, never],
    [callable, never],
    [json(), never, {}],
    [never, never],
    [null, never],
    [json(), json(), never],
  ]) {
    assert.deepEqual(make('/x', open, ...parts).problems, [
      'a route takes query(), json() unless it is for GET, and a handler; nothing else',
    ]);
  }
});

test('a route for GET that accepts a body cannot be served [RFC 9110 §9.3.1]', () => {
  const make = get as (...parts: unknown[]) => Route;
  const { problems, body } = make('/x', open, json(), never);
  assert.deepEqual(problems, [
    'a route takes query(), json() unless it is for GET, and a handler; nothing else',
  ]);
  assert.equal(body, undefined);
});

test('a route or rule without an access, or with a guard in its place, cannot be served', () => {
  const make = get as (...parts: unknown[]) => Route;
  const rule = under as (...parts: unknown[]) => PrefixRule;
  for (const access of [undefined, null, {}, 'open', scope('a')]) {
    const fault = 'has no access, such as open or needs()';
    assert.deepEqual(routeProblems(make('/x', access, never)), [fault]);
    assert.deepEqual(rule('/x', access).problems, [`under /x: ${fault}`]);
  }
});

test('a route has the method of its function, and its inputs', () => {
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
    assert.deepEqual([route.handler, route.problems], [give, []]);
  }
});

test('a route and a rule report the problems of their guards', () => {
  const bad = needs(scope('a b'));
  const fault = 'scope a b: not all of these are valid scopes';
  assert.deepEqual(routeProblems(get('/x', bad, () => ({}))), [fault]);
  assert.deepEqual(routeProblems({ ...get('/x', open, never), access: bad as never }), [fault]);
  assert.deepEqual(under('/x', bad).problems, [`under /x: ${fault}`]);
});

test('a route reports the problems of its inputs, and a missing handler', () => {
  const make = post as (...parts: unknown[]) => Route;
  const schema = 'a schema must have "~standard" of version 1 with a function "validate"';
  assert.deepEqual(routeProblems(make('/x', open, query({} as never), json({} as never))), [
    schema,
    schema,
    'a route takes query(), json() unless it is for GET, and a handler; nothing else',
  ]);
});

test('a complete route can be served', () => {
  assert.deepEqual(post('/x', open, json(), () => ({})).problems, []);
});
