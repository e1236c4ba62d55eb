/* What stops the start of a policy, and of a service that has a route of one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { authenticated, open } from '../../src/gate/rules/access.ts';
import { metadataPaths } from '../../src/options/resource-metadata.ts';
import { OWN_ROUTES, problemsOf as problemsOfRoutes } from '../../src/service/create-service.ts';
import { json, query } from '../../src/service/routes/inputs.ts';
import { get, post, under, upstream, type Route, type Routes } from '../../src/service/routes/route.ts';
import { schemaOf } from '../support/schemas.ts';

const ANY = schemaOf((value) => ({ value }));
const MISPLACED = 'a route of runForwardAuth takes upstream and no inputs; no other route takes upstream';

const problemsOf = (routes: Routes, isPolicy = false, paths: readonly string[] = []) =>
  problemsOfRoutes(routes, { ...OWN_ROUTES, isPolicy }, paths);

const ofPolicy = (...routes: readonly Route[]) => problemsOf({ routes }, true);

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

const METADATA = '/.well-known/oauth-protected-resource';

/** Of these paths, with a handler of the upstream server. */
const problemsAt = (paths: readonly string[], resourceUrl?: string) =>
  problemsOf(
    { routes: paths.map((path) => get(path, open, upstream)) },
    true,
    resourceUrl === undefined ? [] : metadataPaths(resourceUrl),
  );

test('a policy may have routes at the paths of the probes and at /forward-auth, which a service may not', () => {
  const paths = ['/healthz', '/readyz', '/forward-auth', '/forward-auth/{x}', '/{x}'];
  for (const path of paths) assert.deepEqual(problemsAt([path], 'https://api.test/mcp'), [], path);
  assert.deepEqual(problemsAt(paths.slice(0, -1)), []);
  assert.equal(problemsOf({ routes: [get('/healthz', open, () => ({}))] }).length, 1);
});

test('a policy with a route at a path of the metadata does not start, and the problem names the route [RFC 9728 §3.1]', () => {
  const why = (route: string, path: string) =>
    `GET ${route}: matches ${path}, which the service serves itself; change the pattern`;

  assert.deepEqual(problemsAt([METADATA, '/healthz'], 'https://api.test'), [why(METADATA, METADATA)]);
  assert.deepEqual(problemsAt([`${METADATA}/mcp`, `/.well-known/{x}`], 'https://api.test/mcp'), [
    why(`${METADATA}/mcp`, `${METADATA}/mcp`),
  ]);
});

test('a policy may have a route at the path of the metadata of another resource', () => {
  const paths = [`${METADATA}/other`, '/.well-known/security.txt'];
  assert.deepEqual(problemsAt(paths, 'https://api.test/mcp'), []);
  assert.deepEqual(problemsAt([METADATA]), []);
});

test('a policy is checked for every other problem of routes and rules too, even in JavaScript without types', () => {
  const overlapping = [get('/a/{x}', open, upstream), get('/{y}/b', open, upstream)];
  assert.match(ofPolicy(...overlapping).join(), /both match \/a\/b/);
  assert.match(ofPolicy(get(':a', open, upstream)).join(), /is not a path pattern/);
  const rules = [under('/admin', authenticated), get('/a', open, upstream) as never];
  assert.match(problemsOf({ routes: [], rules }, true).join(), /^rules: must be a list of rules/);
  for (const strange of [undefined, { routes: 7 }, {}]) {
    assert.deepEqual(problemsOf(strange as never, true), ['routes and rules: must be lists']);
  }
  assert.deepEqual(problemsOf(7 as never, true), ['routes and rules: must be members of a plain object']);
  for (const strange of [undefined, {}, 'GET /']) assert.ok(ofPolicy(strange as never).length > 0);
});
