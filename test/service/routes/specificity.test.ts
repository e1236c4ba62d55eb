/* Which route takes a path: the index against a naive matcher, which tries every route and compares patterns by
   the paths that they match, over random tables and all paths of a small alphabet. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from '../../../src/gate/rules/access.ts';
import { createRouter, routesProblems } from '../../../src/service/routes/router.ts';
import { del, get, post, under, type Route } from '../../../src/service/routes/route.ts';

const MAKERS = [get, post, del];
const LITERALS = ['a', 'b', 'c%2Fd', '%C3%A9'];
/** The last two are in no pattern. */
const TEXTS = ['a', '%62', 'c%2Fd', '%C3%A9', 'x', 'zz'];
const MOST_SEGMENTS = 3;
const TABLES = 2_000;

/** Mulberry32. */
function createRandom(seed: number) {
  let state = seed;

  return (below: number) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/** Every path of so many segments. */
const pathsOf = (count: number): readonly string[] =>
  count === 0 ? [''] : pathsOf(count - 1).flatMap((path) => TEXTS.map((text) => `${path}/${text}`));

const PATHS = ['/', ...pathsOf(1), ...pathsOf(2), ...pathsOf(3)];

const partsOf = (path: string) => (path === '/' ? [] : path.slice(1).split('/'));

/** The parameters, if the pattern matches. */
function matched(pattern: string, path: string): Readonly<Record<string, string>> | undefined {
  const parts = partsOf(pattern);
  const texts = partsOf(path).map(decodeURIComponent);
  const fits = (part: string, at: number) => part.startsWith('{') || decodeURIComponent(part) === texts[at];
  if (parts.length !== texts.length || !parts.every(fits)) return undefined;

  return Object.fromEntries(
    parts.flatMap((part, at) => (part.startsWith('{') ? [[part.slice(1, -1), texts[at] ?? '']] : [])),
  );
}

const known = new Map<string, ReadonlySet<string>>();

function pathsOfPattern(pattern: string): ReadonlySet<string> {
  const paths = known.get(pattern) ?? new Set(PATHS.filter((path) => matched(pattern, path) !== undefined));
  known.set(pattern, paths);
  return paths;
}

/** `special` matches a strict subset of the paths of `general`. */
function isMoreSpecific(special: Route, general: Route): boolean {
  const some = pathsOfPattern(special.pattern);
  const all = pathsOfPattern(general.pattern);
  return some.size < all.size && [...some].every((path) => all.has(path));
}

const isConflict = (one: Route, other: Route) =>
  one.method === other.method &&
  [...pathsOfPattern(one.pattern)].some((path) => pathsOfPattern(other.pattern).has(path)) &&
  !isMoreSpecific(one, other) &&
  !isMoreSpecific(other, one);

function createTable(random: (below: number) => number): readonly Route[] {
  return Array.from({ length: 1 + random(8) }, () => {
    const segments = Array.from({ length: random(MOST_SEGMENTS + 1) }, (_, at) =>
      random(2) === 0 ? `{p${at}}` : LITERALS[random(LITERALS.length)],
    );
    return MAKERS[random(MAKERS.length)]!(`/${segments.join('/')}`, open, () => ({}));
  });
}

const PROBLEM =
  /^(\w+) (\S+) and (\S+): both match (\S+), and neither is more specific; give one of them another path$/;

test('reports exactly the pairs of one method that share a path and of which neither is more specific, with such a path', () => {
  const random = createRandom(1);
  let seen = 0;
  for (let count = 0; count < TABLES; count += 1) {
    const routes = createTable(random);
    const expected = routes.flatMap((other, at) =>
      routes
        .slice(0, at)
        .filter((one) => isConflict(one, other))
        .map((one) => `${one.method} ${one.pattern} ${other.pattern}`),
    );

    const named = routesProblems({ routes }).map((problem) => {
      const [, method, one = '', other = '', path = ''] = PROBLEM.exec(problem) ?? assert.fail(problem);
      assert.ok(matched(one, path) && matched(other, path), problem);
      return `${method} ${one} ${other}`;
    });
    assert.deepEqual(named.sort(), expected.sort());
    seen += named.length;
  }
  assert.ok(seen > TABLES / 10, `${seen} conflicts`);
});

test('finds at each path the route of each method that is more specific than all others there, in any order', () => {
  const random = createRandom(2);
  let decided = 0;
  for (let count = 0; count < TABLES; count += 1) {
    const routes = createTable(random).reduce<readonly Route[]>(
      (kept, route) => (kept.some((one) => isConflict(one, route)) ? kept : [...kept, route]),
      [],
    );
    assert.deepEqual(routesProblems({ routes }), []);
    const rule = under('/a', open as never);
    const finds = [createRouter(routes, [rule]), createRouter(routes.toReversed(), [rule])];

    // Random ones of all, and those that are spelled like a pattern.
    const paths = Array.from({ length: 40 }, () => PATHS[random(PATHS.length)]!);
    for (const path of [...paths, ...routes.map(({ pattern }) => pattern)]) {
      const fitting = routes.filter(({ pattern }) => matched(pattern, path));
      const foremost = fitting.filter(
        (route) => !fitting.some((one) => one.method === route.method && isMoreSpecific(one, route)),
      );
      decided += fitting.length - foremost.length;
      for (const find of finds) {
        const { matches = [], demands = [] } = find(path) ?? {};
        const methods = new Set(matches.map(({ route }) => route.method));
        assert.equal(methods.size, foremost.length, path);
        for (const route of foremost) {
          const first = matches.find((match) => match.route.method === route.method);
          assert.equal(first?.route, route, path);
          assert.deepEqual(first.readParameters(), matched(route.pattern, path));
          assert.deepEqual(first.demands, [...demands, route.access]);
        }
      }
    }
  }
  assert.ok(decided > TABLES / 10, `${decided} decisions`);
});

// Go's documentation of ServeMux, without its hosts and its patterns for several segments.
for (const [special, general, path] of [
  ['/posts/latest', '/posts/{id}', '/posts/latest'],
  ['/users/me', '/users/{id}', '/users/me'],
  ['/a/b', '/{x}/b', '/a/b'],
  ['/a/{z}/c', '/a/{x}/{y}', '/a/7/c'],
  ['/a%20b/{x}', '/{y}/{z}', '/a%20b/7'],
  ['/a', '/{x}', '/%61'],
] as const) {
  test(`gives ${path} to ${special} rather than to ${general}, in any order`, () => {
    const routes = [special, general].map((pattern) => get(pattern, open, () => ({})));
    for (const all of [routes, routes.toReversed()]) {
      assert.deepEqual(routesProblems({ routes: all }), []);
      assert.equal(createRouter(all)(path)?.matches[0]?.route.pattern, special);
    }
  });
}
