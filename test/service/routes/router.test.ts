import assert from 'node:assert/strict';
import { test } from 'node:test';
import { originPath, pathSegments } from '../../../src/verify/request/facts.ts';
import { authenticated, needs, open } from '../../../src/gate/rules/access.ts';
import { scope } from '../../../src/gate/rules/guards.ts';
import { createRouter, routesProblems } from '../../../src/service/routes/router.ts';
import { mount } from '../../../src/service/fetch/mount.ts';
import { del, get, post, put, under, type Route, type Routes } from '../../../src/service/routes/route.ts';
import { Refused } from '../../../src/verify/base/refusal.ts';
import { unlessRefused } from '../../support/refused.ts';

for (const [target, path] of [
  ['/', '/'],
  ['/?x', '/'],
  ['/a/b', '/a/b'],
  ['/a?x=/b', '/a'],
  ['/a?', '/a'],
  ['/a?x?y', '/a'],
  ['//host/x', '//host/x'],
  ['/a%3Fb', '/a%3Fb'],
  ['/a#b?c', '/a#b'],
] as const) {
  test(`reads the path ${path} from the target ${target} [RFC 9112 §3.2.1]`, () =>
    assert.equal(originPath(target), path));
}

test('returns a match whose rules and routes cannot be changed for later requests', () => {
  const find = createRouter([get('/a', open, () => ({}))], [under('/a', authenticated)]);
  for (const path of ['/a', '/a/b']) {
    const place = find(path);
    assert.ok(Object.isFrozen(place?.demands) && place?.demands.length === 1, path);
    assert.ok(Object.isFrozen(place?.matches), path);
  }
});

test('caches the matches of patterns, but not of the paths that clients choose', () => {
  const find = createRouter([get('/a', open, () => ({})), get('/b/{x}', open, () => ({}))]);
  assert.equal(find('/a'), find('/a'));
  for (const path of ['/b/1', '/%61', '/nowhere']) assert.notEqual(find(path), find(path), path);
});

for (const target of ['', '*', '?x', 'a/b', 'http://host/a', 'host:443', '\\a']) {
  test(`reads no path from the target "${target}" [RFC 9112 §3.2.2]`, () =>
    assert.throws(
      () => unlessRefused(originPath(target)),
      (failure) => failure instanceof Refused && failure.refusal.reason === 'target-refused',
    ));
}

for (const target of ['/a/.\t./b', '/\t', '/a?\t', '/a\f', '/\v', '/\0', '/ ', '/\r', '/\n', '/\x7f']) {
  test(`reads no path from ${JSON.stringify(target)}, in which a URL would drop a character [RFC 9112 §3.2]`, () =>
    assert.throws(
      () => unlessRefused(originPath(target)),
      (failure) => failure instanceof Refused && failure.refusal.reason === 'target-refused',
    ));
}

for (const [path, segments] of [
  ['/', []],
  ['/api/public', ['api', 'public']],
  ['/%61pi/%70ublic', ['api', 'public']],
  ['/a%2Fb/c', ['a/b', 'c']],
  ['/a%252Fb', ['a%2Fb']],
  ['/a;b/c=d', ['a;b', 'c=d']],
  ['/a+b', ['a+b']],
  ['/%E4%B8%AD', ['中']],
  ['/...', ['...']],
  ['/.a/a.', ['.a', 'a.']],
  ['/.%20', ['. ']],
] as const) {
  test(`decodes each segment of ${path} once [RFC 3986 §2.4]`, () =>
    assert.deepEqual(pathSegments(path), segments));
}

for (const [what, paths] of [
  ['an empty segment', ['', '//', '/a/', '//a', '/a//b', '/a/b//']],
  ['a dot segment', ['/.', '/..', '/a/.', '/a/../b', '/./a', '/%2e/a', '/a/.%2E', '/a/%2e./b']],
  ['a broken escape', ['/%', '/a%2', '/%zz/a', '/a/%u0061', '/%%41']],
  ['bytes that are not UTF-8', ['/%C0%AF', '/%c0%ae%c0%ae/a', '/%ED%A0%80', '/a/%FF', '/%E4%B8', '/%80']],
] as const) {
  for (const path of paths) {
    test(`finds no segments in ${path} with ${what} [RFC 3986 §2.1, §3.3]`, () =>
      assert.equal(pathSegments(path), undefined));
  }
}

test('finds no segments in a path of more than a hundred [RFC 3986 §3.3]', () => {
  assert.equal(pathSegments('/a'.repeat(100))?.length, 100);
  assert.equal(pathSegments('/a'.repeat(101)), undefined);
});

const routeAt = (pattern: string) => get(pattern, open, () => ({}));

const ROUTES = [
  '/',
  '/api/public',
  '/api/org/{orgId}',
  '/x/{one}/{two}/end',
  '/files/v1.0/a-b_c',
  '/caf%C3%A9',
  '/reports%2Fall',
].map(routeAt);

const router = createRouter(ROUTES);

const found = (find: ReturnType<typeof createRouter>, path: string) => find(path)?.matches[0]?.route;

for (const [path, pattern, parameters] of [
  ['/', '/', {}],
  ['/api/public', '/api/public', {}],
  ['/%61pi/public', '/api/public', {}],
  ['/api/org/7', '/api/org/{orgId}', { orgId: '7' }],
  ['/api/org/a%2Fb', '/api/org/{orgId}', { orgId: 'a/b' }],
  ['/x/y/z/end', '/x/{one}/{two}/end', { one: 'y', two: 'z' }],
  ['/files/v1.0/a-b_c', '/files/v1.0/a-b_c', {}],
  ['/caf%c3%a9', '/caf%C3%A9', {}],
  ['/reports%2fall', '/reports%2Fall', {}],
] as const) {
  test(`matches ${path} with the route ${pattern} on decoded segments`, () => {
    const match = router(path)?.matches[0];
    assert.equal(
      match?.route,
      ROUTES.find((route) => route.pattern === pattern),
    );
    assert.deepEqual({ ...match?.readParameters() }, parameters);
  });
}

for (const path of [
  '/api',
  '/api/public/x',
  '/api/Public',
  '/API/public',
  '/api%2Fpublic',
  '/reports/all',
  '/api/org',
  '/api/org/7/8',
  '/x/y/z/End',
  '/files/v1x0/a-b_c',
]) {
  test(`matches ${path} with no route`, () => assert.deepEqual(router(path)?.matches, []));
}

const ANOTHER = 'and neither is more specific; give one of them another path';

for (const [one, other, common] of [
  ['/', '/', '/'],
  ['/a/b', '/a/b', '/a/b'],
  ['/a/b', '/a/%62', '/a/b'],
  ['/{x}', '/{y}', '/x'],
  ['/a/{x}/c', '/a/b/{y}', '/a/b/c'],
  ['/a/{x}', '/{y}/b', '/a/b'],
  ['/{x}/b/{y}/d', '/a/{x}/c/{y}', '/a/b/c/d'],
  ['/{x}/{y}/c', '/{x}/b/{y}', '/x/b/c'],
  ['/a%20b/{x}', '/{y}/c%2Fd', '/a%20b/c%2Fd'],
  // Go's documentation of ServeMux.
  ['/posts/{id}', '/{resource}/latest', '/posts/latest'],
] as const) {
  test(`refuses the routes ${one} and ${other}, of which neither is more specific, and names a common path and a remedy`, () => {
    for (const patterns of [
      ['/z/z/z', one, other],
      [one, '/z/z/z', other],
      [one, other],
    ]) {
      const routes = patterns.map(routeAt);
      const problem = `GET ${one} and ${other}: both match ${common}, ${ANOTHER}`;
      assert.deepEqual(routesProblems({ routes }), [problem]);
    }
  });
}

for (const [one, other] of [
  ['/', '/{x}'],
  ['/a', '/b'],
  ['/a', '/a/b'],
  ['/{x}', '/{x}/{y}'],
  ['/a/{x}', '/b/{x}'],
  ['/a/{x}/c', '/a/{x}/d'],
  ['/a', '/A'],
  ['/a', '/a%2Fb'],
] as const) {
  test(`accepts the routes ${one} and ${other}, which have no path in common`, () => {
    const routes = [one, other].map(routeAt);
    assert.deepEqual(routesProblems({ routes }), []);
    for (const { pattern } of routes) assert.equal(found(createRouter(routes), pattern)?.pattern, pattern);
  });
}

test('accepts routes of several methods at one path, and finds each', () => {
  const routes = [routeAt('/a/{x}'), post('/a/{y}', open, () => {}), del('/a/b', open, () => {})];
  assert.deepEqual(routesProblems({ routes }), []);
  const { matches = [] } = createRouter(routes)('/a/b') ?? {};
  assert.deepEqual(
    matches.map(({ route, readParameters }) => [route.method, readParameters()]),
    [
      ['DELETE', {}],
      ['GET', { x: 'b' }],
      ['POST', { y: 'b' }],
    ],
  );
});

const A_TEXT = 'one such as /orders/{id}';
const NO_WILDCARD = 'a route for each path, without wildcard, and {name} for a segment that varies';
const PATH_ALONE = 'the path alone: a query goes into query(), an optional part into a second route';
const PARAMETER = 'a parameter as {name}, of letters, digits and _, as a whole segment, and each name once';
const SEGMENTS = 'at most a hundred segments, no dot segment, broken escape or control character';

const noPattern = (fix: string) => `is not a path pattern; write ${fix}`;

for (const [fix, ...patterns] of [
  ['/', '', '//', 'https://api.test', 'https://api.test/'],
  ['/api', 'api', '/api/', '//api', 'api/', '//api//'],
  [
    '/api/public',
    'api/public',
    '/api//public/',
    'https://api.test/api/public',
    'http://[::1]:80/api/public/',
  ],
  ['/{id}', 'https://api.test/:id'],
  ['/{id}', ':id', '/:id', '/[id]', '/<id>', '/<int:id>', '/:id/'],
  ['/a/{id}', '/a/:id', '/a/[id]', '/a/<id>', 'a/:id'],
  ['/a/{id}/b/{of}', '/a/:id/b/:of', '/a/:id/b/[of]/', '/a/{id}/b/<path:of>'],
  [NO_WILDCARD, '*', '/*', '/a*', '/a/*', '/a/**', '/[...all]', '/{all...}', '/:all*'],
  [PATH_ALONE, '/?', '/a?', '/#', '/a#', '/a?b={c}', '/:id?'],
  [PARAMETER, '/a{x}', '/{y}b', '/{a-b}', '/{a}{b}', '/{}', '/{x', '/x}', '/{x}/a/{x}', '/:x/{x}', '/{a/b}'],
  [PARAMETER, '/:', '/:a-b', '/a[id]', '/[', '/a[', '/]', '/a]', '/a<id>', '/<', '/a<', '/>', '/a>'],
  [SEGMENTS, '/./api', '/..', '/%zz', '/a'.repeat(101), '/a\0', '/a\tb', '/\x1f', '/\x7f'],
  [SEGMENTS, '/\ud83d', '/a\udc00b'],
] as const) {
  for (const pattern of patterns) {
    test(`refuses "${pattern}" as a pattern, and says what to write`, () => {
      const problems = routesProblems({ routes: [routeAt(pattern)] });
      assert.deepEqual(problems, [`GET ${pattern}: ${noPattern(fix)}`]);
    });
  }
}

for (const [what, pattern] of [
  ['a RegExp', /a/],
  ['a list of paths', ['/a', '/b']],
] as const) {
  test(`refuses ${what} as a pattern, and reports every other problem too`, () => {
    const routes = [routeAt(pattern as unknown as string), routeAt('b')];
    assert.deepEqual(routesProblems({ routes }), [
      `GET ${pattern}: ${noPattern(A_TEXT)}`,
      `GET b: ${noPattern('/b')}`,
    ]);
  });
}

test('treats a colon inside a segment as text', () => {
  const router = createRouter([routeAt('/orders:batch')]);
  assert.equal(found(router, '/orders:batch')?.pattern, '/orders:batch');
});

const NO_ROUTE = 'is not a route; make one with get, post, put, patch or del of the same copy of the package';

const strange = (at = 0) => [`routes[${at}]: ${NO_ROUTE}`];

const NO_LISTS = ['routes and rules: must be lists'];

const NO_TABLE = ['routes and rules: must be members of a plain object'];

const NO_RULE = 'rules: must be a list of rules that under() makes, of the same copy of the package';

for (const [what, routes, problems] of [
  ['an empty object', { routes: [{}] }, strange()],
  ['null and false', { routes: [null, false] }, [...strange(), ...strange(1)]],
  ['a string', { routes: ['/a'] }, strange()],
  ['a function', { routes: [routeAt] }, strange()],
  ['a list of routes in the list', { routes: [[routeAt('/a')]] }, strange()],
  ['a hole', { routes: Object.assign([routeAt('/a')], { 2: routeAt('/b') }) }, strange(1)],
  ['a rule among the routes', { routes: [under('/a', authenticated)] }, strange()],
  ['no routes', {}, NO_LISTS],
  ['a route in place of a list', { routes: routeAt('/a') }, NO_LISTS],
  ['null in place of a list', { routes: null }, NO_LISTS],
  ['a Set in place of a list', { routes: new Set([routeAt('/a')]) }, NO_LISTS],
  [
    'a rule in place of a list, beside a wrong route',
    { routes: [{}], rules: under('/a', authenticated) },
    [...NO_LISTS, ...strange()],
  ],
  ['a wrong rule, beside routes that are no list', { routes: null, rules: [{}] }, [...NO_LISTS, NO_RULE]],
  ['nothing in place of an object with routes', undefined, NO_LISTS],
  ['a list of routes in place of an object with routes', [routeAt('/a')], NO_TABLE],
  [
    'an object of a class, whose rules would be inherited',
    new (class {
      routes = [routeAt('/a')];
      get rules() {
        return [under('/', authenticated)];
      }
    })(),
    NO_TABLE,
  ],
  [
    'routes by another name',
    { route: [routeAt('/a')] },
    ['route: is unknown here; write routes and rules', ...NO_LISTS],
  ],
  ['a route without a handler', { routes: [{ ...routeAt('/a'), handler: undefined }] }, strange()],
  ['a route without an access', { routes: [{ ...routeAt('/a'), access: undefined }] }, strange()],
  [
    'a route with a guard in place of its access',
    { routes: [{ ...routeAt('/a'), access: scope('a') }] },
    strange(),
  ],
  [
    'rules by another name',
    { routes: [routeAt('/a')], rule: [under('/a', authenticated)] },
    ['rule: is unknown here; write routes and rules'],
  ],
  ['a route among the rules', { routes: [], rules: [routeAt('/a')] }, [NO_RULE]],
  [
    'a hole among the rules',
    { routes: [], rules: Object.assign([under('/a', authenticated)], { length: 2 }) },
    [NO_RULE],
  ],
  ['nothing among the rules', { routes: [], rules: [undefined, null] }, [NO_RULE, NO_RULE]],
  [
    'a rule with a guard in place of its access',
    { routes: [], rules: [{ prefix: ['a'], access: scope('a') }] },
    [NO_RULE],
  ],
  ['a rule without an access', { routes: [], rules: [{ prefix: ['a'] }] }, [NO_RULE]],
  [
    'a rule that under() did not make',
    { routes: [], rules: [{ prefix: ['a'], access: authenticated }] },
    [NO_RULE],
  ],
  ['a copy of a rule', { routes: [], rules: [{ ...under('/a', authenticated) }] }, [NO_RULE]],
  ['an access in place of rules', { routes: [], rules: authenticated }, NO_LISTS],
  [
    'a value that is not a route, and reports every other problem too',
    { routes: [{}, routeAt('b'), routeAt('/a'), routeAt('/a')], rules: [0, routeAt('/c')] },
    [
      ...strange(),
      'GET b: is not a path pattern; write /b',
      `GET /a and /a: both match /a, ${ANOTHER}`,
      NO_RULE,
      NO_RULE,
    ],
  ],
] as const) {
  test(`refuses routes with ${what}`, () =>
    assert.deepEqual(routesProblems(routes as unknown as Routes), problems));
}

test('refuses a copy of a route, and an object that looks like one', () => {
  const made = routeAt('/a');
  const problem =
    'routes[0]: is not a route; make one with get, post, put, patch or del of the same copy of the package';
  for (const route of [
    { ...made },
    Object.create(made),
    new Proxy(made, {}),
    structuredClone({ ...made, handler: null, access: null }),
  ]) {
    assert.deepEqual(routesProblems({ routes: [route as Route] }), [problem]);
  }
});

test('refuses routes of any method whose pattern is exactly a path of the service itself', () => {
  const routes = [
    routeAt('/a/{x}'),
    post('/a/b', open, () => {}),
    del('/{x}/{y}', open, () => {}),
    put('/%61/b', open, () => {}),
    routeAt('/a'),
    routeAt('/a/b/c'),
  ];
  const paths = ['/a/b', '/a/b/'];
  assert.deepEqual(routesProblems({ routes }, paths), [
    'POST /a/b: matches /a/b, which the service serves itself; change the pattern',
    'PUT /%61/b: matches /a/b, which the service serves itself; change the pattern',
  ]);
});

test('gives no more general route a path of the service itself, in any spelling, of any method', () => {
  const own = routeAt('/own');
  const routes = [routeAt('/{x}'), post('/{x}', open, () => {}), routeAt('/{x}/{y}')];
  const find = createRouter(routes, [under('/', authenticated)], [own], ['/a/*', '/a/*/']);
  const at = (path: string) => find(path)?.matches.map(({ route }) => route);
  for (const path of ['/own', '/%6Fwn']) assert.deepEqual(at(path), [own], path);
  for (const path of ['/a/*', '/%61/%2A']) {
    assert.deepEqual([at(path), find(path)?.demands], [[], [authenticated]], path);
  }
  assert.deepEqual(at('/other'), routes.slice(0, 2));
  assert.deepEqual(at('/a/b'), routes.slice(2));
});

test('finds a route whose pattern is invalid at no path', () => {
  const find = createRouter([routeAt('no path'), routeAt('/a*')]);
  for (const path of ['/', '/a*', '/no path']) assert.deepEqual(find(path).matches, [], path);
});

test('applies no rule at the paths of the service itself', () => {
  const own = routeAt('/own');
  const find = createRouter(
    [routeAt('/a')],
    [under('/', authenticated), under('/own', authenticated)],
    [own],
  );
  assert.deepEqual([find('/own')?.demands, find('/own')?.matches[0]?.route], [[], own]);
  assert.deepEqual(
    [find('/%6fwn')?.demands, find('/own/x')?.demands.length, find('/a')?.demands.length],
    [[], 2, 1],
  );
});

for (const pattern of [undefined, null, 5, {}]) {
  test(`refuses ${JSON.stringify(pattern)} as a pattern`, () =>
    assert.deepEqual(routesProblems({ routes: [routeAt(pattern as never)] }), [
      `GET ${pattern}: ${noPattern(A_TEXT)}`,
    ]));
}

test('treats escaped braces as text [RFC 3986 §2.1]', () => {
  const router = createRouter([routeAt('/%7Bx%7D')]);
  assert.deepEqual(router('/7')?.matches, []);
  assert.equal(found(router, '/%7Bx%7D')?.pattern, '/%7Bx%7D');
});

test('accepts several parameters, even if one name is part of another', () => {
  const router = createRouter([routeAt('/{a}/{ab}/x/{b}')]);
  const { matches = [] } = router('/1/2/x/3') ?? {};
  assert.deepEqual(
    matches.map(({ readParameters }) => readParameters()),
    [{ a: '1', ab: '2', b: '3' }],
  );
});

test('each path of the service takes that path from a route', () => {
  const find = createRouter([routeAt('/{x}')], [], [], ['/a', '/b']);
  const taken = ['/a', '/b', '/c'].map((path) => [find(path).matches.length, find(path).isOwn]);
  assert.deepEqual(taken, [
    [0, true],
    [0, true],
    [1, false],
  ]);
});

test('a path of the service that no request can have takes none from a route', () => {
  const find = createRouter([get('/{x}', open, () => ({}))], [], [], ['/a//b', '/%zz']);
  for (const path of ['/~', '/a', '/b', '/undefined']) {
    const { matches, isOwn } = find(path);
    assert.deepEqual([matches.length, isOwn], [1, false], path);
  }
});

test('finds nothing at a path without a canonical form [RFC 3986 §2.1, §3.3]', () => {
  for (const path of [
    '//',
    '/api/',
    '/api//public',
    '/api/./public',
    '/api/../api/public',
    '/%zz',
    '/api/%FF',
  ]) {
    assert.deepEqual(router(path), { demands: [], matches: [], isOwn: false });
  }
});

const COVERING = { 'api/org': needs(scope('org')), api: needs(scope('api')) };

const RULES = Object.entries(COVERING).map(([prefix, access]) => under(`/${prefix}`, access));

for (const [path, ...prefixes] of [
  ['/api/org/7', 'api/org', 'api'],
  ['/api/org', 'api/org', 'api'],
  ['/%61pi/org/x/y', 'api/org', 'api'],
  ['/api/org%2F7', 'api'],
  ['/api/public', 'api'],
  ['/%61pi/public', 'api'],
  ['/api', 'api'],
  ['/api/nowhere', 'api'],
  ['/apis/public'],
  ['/files/v1.0/a-b_c'],
] as const) {
  test(`applies to ${path}, with or without a route, every rule whose prefix covers it: ${prefixes.join(' and ') || 'none'}`, () => {
    assert.deepEqual(
      createRouter(ROUTES, RULES)(path)?.demands,
      prefixes.map((prefix) => COVERING[prefix]),
    );
  });
}

test('applies the rules that were in the list at the start [H2]', () => {
  const rules = [under('/api', authenticated)];
  const routes = [routeAt('/api/{id}')];
  const ruled = createRouter(routes, rules);
  rules.length = 0;
  routes.length = 0;
  const { demands, matches } = ruled('/api/7') ?? {};
  assert.deepEqual([demands?.length, matches?.length], [1, 1]);
});

test('applies a rule for / to every path', () => {
  const rule = under('/', authenticated);
  assert.deepEqual({ ...rule }, { prefix: [], access: authenticated });
  for (const path of ['/', '/api/public', '/a', '/%7B/x/y/z', '/nowhere']) {
    assert.deepEqual(createRouter(ROUTES, [rule])(path)?.demands, [authenticated]);
  }
});

const SUCH = 'one such as /api/admin';

for (const [fix, ...prefixes] of [
  ['/', '', '//', '*', '/*', '/**', '/:id', '/{id}', '/[id]/x'],
  ['/api', 'api', '/api/', '//api', '/api/*', '/api/**', '/api/{id}', '/api/:id', '/api/[id]', '/api/<id>'],
  ['/api', '/api/:id/*', '/api/{id}/x', 'api/{id}/x/:y/', 'https://api.test/api', 'https://api.test/api/*'],
  ['/api/admin', '/api/admin/', '/api//admin/**'],
  [SUCH, '/./api', '/api/..', '/%zz', '?', '/a?b', '/a#', '/api/?', '/api/#', '/api*', '/api/{', '/api/}'],
  [SUCH, '/api/[', '/api/]', '/api/<', '/api/>', '/api/:', '/api/x{id}', '/api/*x', '/api/{id}x'],
] as const) {
  for (const prefix of prefixes) {
    test(`refuses "${prefix}" as the prefix of a rule, and says what to write [RFC 3986 §2.1, §3.3]`, () => {
      const why = 'must be a path prefix without wildcard or parameter';
      assert.throws(
        () => under(prefix, authenticated),
        new TypeError(`under ${prefix}: ${why}; write ${fix}`),
      );
    });
  }
}

for (const [what, prefix] of Object.entries({ list: [], null: null, number: 5, undefined })) {
  test(`refuses a ${what} as the prefix of a rule or mount, and says what to write`, () => {
    const message = /^\w+ [^:]*: must be a path prefix without wildcard or parameter; write \//;
    assert.throws(() => under(prefix as never, authenticated), { name: 'TypeError', message });
    const handler = () => new Response();
    assert.throws(() => mount(prefix as never, authenticated, handler), { name: 'TypeError', message });
  });
}

for (const prefix of ['/a\0', '/a\tb', '/\x1f', '/\x7f', '/\ud800']) {
  test(`refuses ${JSON.stringify(prefix)} as a prefix, since no log or metric could show it`, () =>
    assert.throws(() => under(prefix, authenticated), TypeError));
}

test('compares the prefix of a rule by its decoded segments [RFC 3986 §2.4]', () => {
  assert.deepEqual(under('/%61pi/a%2Fb', authenticated).prefix, ['api', 'a/b']);
  const { prefix } = under('/v1/items:batch/%2A/$a', authenticated);
  assert.deepEqual(prefix, ['v1', 'items:batch', '*', '$a']);
});

test('finds the same match for every spelling of a path', () => {
  const both = createRouter(ROUTES, RULES);
  for (const { pattern } of ROUTES.filter((route) => /^\/[^{]+$/.test(route.pattern))) {
    const spelled = pattern.replace(/[a-z]/, (letter) => `%${letter.charCodeAt(0).toString(16)}`);
    assert.notEqual(spelled, pattern);
    const [one, other] = [spelled, pattern].map((path) => {
      const { demands, matches = [] } = both(path) ?? {};
      const all = matches.map((match) => [match.route, match.demands, match.readParameters()]);
      return [demands, all];
    });
    assert.deepEqual(one, other);
  }
});

test('freezes parameters, so that no handler can change them for the next request', () => {
  const parameters = router('/api/public')?.matches[0]?.readParameters() ?? {};
  assert.throws(() => Object.assign(parameters, { orgId: '7' }), TypeError);
});
