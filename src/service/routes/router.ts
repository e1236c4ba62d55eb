// Path → routes and rules. Promises: overlapping routes prevent startup.
import { pathSegments } from './segments.ts';
import { isMatch, overlapProblem, parsePattern, patternProblem, type Segments } from './pattern.ts';
import {
  isRule,
  routeProblems,
  type PathParameters,
  type PrefixRule,
  type Route,
  type Routes,
} from './route.ts';

/** Shared between requests. */
export type Matched = NonNullable<ReturnType<ReturnType<typeof createRouter>>>;

export type Match = Matched['matches'][number];

/**
 * Returns a function that finds the routes and rules at a path. No rule applies to `ownRoutes`, and a path
 * without canonical form gives `undefined`. Trusts `routes` to have passed `routesProblems`.
 */
export function createRouter(
  routes: readonly Route[],
  rules: readonly PrefixRule[] = [],
  ownRoutes: readonly Route[] = [],
) {
  // The application may change its list.
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

  // For speed: a path that is spelled like a pattern is found at once.
  const found = new Map(all.map(({ pattern }) => [pattern, search(pattern)]));
  return (path: string) => found.get(path) ?? search(path);
}

/**
 * What prevents startup: unknown members, what is not a route or rule, and patterns that are invalid,
 * overlap, or match one of `ownPaths`.
 */
export function routesProblems(served: Routes, ownPaths: readonly string[] = []): string[] {
  const { routes, rules = [], isPolicy = false, ...others }: Routes = Object(served);
  const strange = Object.keys(others).map((name) => `${name}: is unknown here; write routes and rules`);
  if (!Array.isArray(routes) || !Array.isArray(rules)) return [...strange, 'routes and rules: must be lists'];

  return [
    ...strange,
    ...problemsOfAll([...routes], ownPaths, isPolicy),
    ...rules.flatMap((rule) => (isRule(rule) ? [] : NO_RULE)),
  ];
}

const NO_RULE = 'rules: must be a list of rules that under() makes';

function problemsOfAll(routes: readonly Route[], ownPaths: readonly string[], isPolicy: boolean) {
  const parsed = routes.map((route) => {
    const { method, pattern }: Route = Object(route);
    return { route, method, pattern, segments: parsePattern(pattern) };
  });

  return parsed.flatMap(({ route, method, pattern, segments }, index) => {
    const ofPattern = segments ? shadowProblems(segments, ownPaths) : [patternProblem(pattern)];
    const ofRoute = [...routeProblems(route, isPolicy), ...ofPattern];
    const problems = ofRoute.map((problem) => `${pattern}: ${problem}`);

    const earlierRoutes = parsed.slice(0, index).filter((earlier) => earlier.method === method);
    const overlaps = earlierRoutes.flatMap((earlier) => overlapProblem(earlier, { pattern, segments }) ?? []);
    return [...problems, ...overlaps].map((problem) => `${method} ${problem}`);
  });
}

const shadowProblems = (segments: Segments, ownPaths: readonly string[]) =>
  ownPaths.flatMap((path) => {
    const texts = pathSegments(path);
    const isShadowed = texts !== undefined && isMatch(segments, texts);
    return isShadowed ? `matches ${path}, which the service serves itself; change the pattern` : [];
  });

function parametersOf(segments: Segments, texts: readonly string[]): PathParameters {
  const values = segments.flatMap(({ name }, at) => {
    const text = texts[at] ?? '';
    return name === undefined ? [] : [[name, text] as const];
  });
  return Object.freeze(Object.fromEntries(values));
}
