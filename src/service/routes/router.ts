// Path → routes and rules. Promises: overlapping routes prevent startup.
import type { DecidedAccess } from '../../gate/rules/access.ts';
import { pathSegments } from '../../verify/request/path.ts';
import { isMatch, overlapProblem, parsePattern, patternProblem, type Segments } from './pattern.ts';
import {
  isRule,
  routeProblems,
  type PathParameters,
  type PrefixRule,
  type Route,
  type Routes,
} from './route.ts';

export interface Match {
  readonly route: Route;
  readonly parameters: PathParameters;
  /** The accesses in force: those of the rules, then the route's. */
  readonly demands: readonly DecidedAccess<unknown>[];
}

/** Shared between requests. */
export interface Matched {
  /** Those of the rules. */
  readonly demands: readonly DecidedAccess<unknown>[];
  /** At most one for each method. */
  readonly matches: readonly Match[];
}

/** `undefined` for a path without canonical form. */
export type MatchPath = (path: string) => Matched | undefined;

/**
 * Returns a function that finds the routes and rules at a path. No rule applies to `ownRoutes`. Trusts
 * `routes` to have passed `routesProblems`.
 */
export function createRouter(
  routes: readonly Route[],
  rules: readonly PrefixRule[] = [],
  ownRoutes: readonly Route[] = [],
): MatchPath {
  // The application may change its list.
  const kept = rules.slice();
  const all = [...ownRoutes, ...routes];
  const parsed = all.map((route) => ({ route, segments: parsePattern(route.pattern) ?? [] }));

  function search(path: string) {
    const texts = pathSegments(path);
    if (texts === undefined) return undefined;

    const isCovering = ({ prefix }: PrefixRule) => prefix.every((text, at) => texts[at] === text);
    const fitting = parsed.filter(({ segments }) => isMatch(segments, texts));
    const isOwn = fitting.some(({ route }) => ownRoutes.includes(route));
    const covering = isOwn ? [] : kept.filter(isCovering);
    const demands = Object.freeze(covering.map(({ access }) => access));
    const matches = fitting.map(({ route, segments }) => ({
      route,
      parameters: parametersOf(segments, texts),
      demands: Object.freeze([...demands, route.access]),
    }));
    return { demands, matches: Object.freeze(matches) };
  }

  // For speed: a path that is spelled like a pattern is found at once.
  const found = new Map(all.map(({ pattern }) => [pattern, search(pattern)]));
  return (path: string) => found.get(path) ?? search(path);
}

/**
 * What prevents startup: unknown members, what is not a route or rule, and patterns that are invalid,
 * overlap, or match one of `ownPaths`.
 */
export function routesProblems(served: Routes, ownPaths: readonly string[] = [], isPolicy = false): string[] {
  const { routes, rules = [], ...others }: Routes = Object(served);
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
