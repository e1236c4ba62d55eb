// Path → routes and rules. Promises: overlapping routes stop the start.
import { pathSegments } from './segments.ts';
import { isMatch, overlapProblem, parsePattern, patternProblem, type Segments } from './pattern.ts';
import { routeProblems, type PathParameters, type PrefixRule, type Route, type Routes } from './route.ts';

/** The routes and rules at a path; shared between requests. */
export type Matched = NonNullable<ReturnType<ReturnType<typeof createRouter>>>;

/** A route with the parameters of a path. */
export type Match = Matched['matches'][number];

/**
 * Returns a function that finds what stands at a path: the routes whose pattern it matches, and the rules
 * whose prefix covers it, except on `ownRoutes`. `undefined` for a path without canonical form. Trusts
 * `routes` to have passed `routesProblems`.
 */
export function createRouter(
  routes: readonly Route[],
  rules: readonly PrefixRule[] = [],
  ownRoutes: readonly Route[] = [],
) {
  // The caller may change the list later.
  const kept = rules.slice();
  const all = [...ownRoutes, ...routes];
  const parsed = all.map((route) => ({ route, segments: parsePattern(route.pattern) ?? [] }));

  function search(path: string) {
    const texts = pathSegments(path);
    if (texts === undefined) return undefined;

    const isCovering = ({ prefix }: PrefixRule) => prefix.every((text, at) => texts[at] === text);
    const fitting = parsed.filter(({ segments }) => isMatch(segments, texts));
    const matches = fitting.map(({ route, segments }) => ({
      route,
      parameters: parametersOf(segments, texts),
    }));
    const isOwn = matches.some(({ route }) => ownRoutes.includes(route));
    return {
      rules: Object.freeze(isOwn ? [] : kept.filter(isCovering)),
      /** At most one for each method. */
      matches: Object.freeze(matches),
    };
  }

  /** Precomputed for paths spelled like a pattern. */
  const found = new Map(all.map(({ pattern }) => [pattern, search(pattern)]));
  return (path: string) => found.get(path) ?? search(path);
}

/**
 * What stops the start of a service that itself serves `ownPaths`: values that are no routes or rules, what
 * is wrong with each, and patterns that are invalid, match such a path, or overlap, with an example.
 */
export function routesProblems(served: Routes, ownPaths: readonly string[] = []): string[] {
  const { routes, rules = [], ...others }: Routes = Object(served);
  const strange = Object.keys(others).map((name) => `${name}: is unknown here; write routes and rules`);
  if (!Array.isArray(routes) || !Array.isArray(rules)) return [...strange, 'routes and rules: must be lists'];

  return [
    ...strange,
    // The copy has no holes.
    ...problemsOfAll([...routes], ownPaths),
    ...rules.flatMap((rule) => (Object(rule).prefix && rule.problems) ?? NO_RULE),
  ];
}

/** In JavaScript anything may stand among the rules, a route too. */
const NO_RULE = 'rules: must be a list of what under gives';

function problemsOfAll(routes: readonly Route[], ownPaths: readonly string[]) {
  const copies = routes.map((route) => ({ ...route }));
  const parsed = copies.map((route) => ({ ...route, segments: parsePattern(route.pattern) }));

  return parsed.flatMap(({ segments, ...route }, index) => {
    const { method, pattern } = route;
    const ofPattern = segments ? shadowProblems(segments, ownPaths) : [patternProblem(pattern)];
    const ofRoute = [...routeProblems(route), ...ofPattern];
    const problems = ofRoute.map((problem) => `${pattern}: ${problem}`);

    const earlierRoutes = parsed.slice(0, index).filter((earlier) => earlier.method === method);
    const overlaps = earlierRoutes.flatMap((earlier) => overlapProblem(earlier, { pattern, segments }) ?? []);
    return [...problems, ...overlaps].map((problem) => `${method} ${problem}`);
  });
}

/** Patterns that match a path of the service itself, whatever the method. */
const shadowProblems = (segments: Segments, ownPaths: readonly string[]) =>
  ownPaths.flatMap((path) => {
    const texts = pathSegments(path);
    const isShadowed = texts !== undefined && isMatch(segments, texts);
    return isShadowed ? `matches ${path}, where the service answers itself; give it another` : [];
  });

/** The path's texts at the pattern's parameters. */
function parametersOf(segments: Segments, texts: readonly string[]): PathParameters {
  const values = segments.flatMap(({ name }, at) => {
    const text = texts[at] ?? '';
    return name === undefined ? [] : [[name, text] as const];
  });
  return Object.freeze(Object.fromEntries(values));
}
