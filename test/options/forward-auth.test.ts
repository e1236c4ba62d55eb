/* What stops the start of a policy, and of a service that has a route of one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { authenticated, open } from '../../src/gate/access.ts';
import { problemsOf } from '../../src/process/compose-service.ts';
import { json, query } from '../../src/service/routes/inputs.ts';
import { get, post, under, upstream, type Route } from '../../src/service/routes/route.ts';
import { schemaOf } from '../support/schemas.ts';

const ANY = schemaOf((value) => ({ value }));
const MISPLACED = 'a route of runForwardAuth takes upstream and no inputs; no other route takes upstream';

const ofPolicy = (...routes: readonly Route[]) => problemsOf({ routes, isPolicy: true });

const ofService = (...routes: readonly Route[]) => problemsOf({ routes });

test('a service with upstream does not start, and the problem names the route', () => {
  assert.deepEqual(
    ofService(
      get('/a', open, upstream),
      get('/b', open, () => ({})),
    ),
    [`GET /a: ${MISPLACED}`],
  );
  assert.deepEqual(ofService(post('/a', authenticated, json(), upstream)), [`POST /a: ${MISPLACED}`]);
});

test('a policy with a handler, json() or query() does not start, and each problem names its route', () => {
  const problems = ofPolicy(
    get('/a', open, () => ({})),
    post('/b', open, json(), upstream),
    get('/c', open, query(ANY), upstream),
    post('/d', open, query(ANY), json(), () => {}),
    get('/e', open, upstream),
  );
  const wrong = ['GET /a', 'POST /b', 'GET /c', 'POST /d'];
  assert.deepEqual(
    problems,
    wrong.map((route) => `${route}: ${MISPLACED}`),
  );
});

test('a policy may have routes on every path of the service itself', () => {
  const paths = [
    '/healthz',
    '/readyz',
    '/forward-auth',
    '/forward-auth/{x}',
    '/.well-known/oauth-protected-resource',
  ];
  const routes = paths.map((path) => get(path, open, upstream));
  assert.deepEqual(problemsOf({ routes, isPolicy: true }, { resourceUrl: 'https://api.test' }), []);
  assert.equal(problemsOf({ routes: [get('/healthz', open, () => ({}))] }).length, 1);
});

test('a policy has every other problem of routes too, in JavaScript as well', () => {
  const overlapping = [get('/a/{x}', open, upstream), get('/a/b', open, upstream)];
  assert.match(ofPolicy(...overlapping).join(), /both match \/a\/b/);
  assert.match(ofPolicy(get(':a', open, upstream)).join(), /is not a path pattern/);
  const rules = [under('admin', authenticated)];
  assert.match(problemsOf({ routes: [], rules, isPolicy: true }).join(), /must be a path prefix/);
  for (const strange of [undefined, 7, { routes: 7 }, {}]) {
    const given = { ...(strange as object), isPolicy: true } as never;
    assert.deepEqual(problemsOf(given), ['routes and rules: must be lists']);
  }
  for (const strange of [undefined, {}, 'GET /']) assert.ok(ofPolicy(strange as never).length > 0);
});
