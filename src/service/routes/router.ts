// Path → routes and rules. Promises: the most specific route counts, in whatever order they are written; two
// of which neither is more specific stop startup.
import type { DecidedAccess } from '../../gate/rules/access.ts';
import { isPlain } from '../../verify/base/encoding.ts';
import { pathSegments } from '../../verify/request/facts.ts';
import {
  covers,
  Index,
  namesIn,
  overlapProblems,
  patternProblem,
  type Literals,
  type Patterned,
} from './pattern.ts';
import {
  isRoute,
  isRule,
  literalsOf,
  upstream,
  type Mount,
  type PathParameters,
  type PrefixRule,
  type Route,
  type Routes,
} from './route.ts';

export interface Match {
  readonly route: Route;
  /** Costs as much as the search. */
  readonly readParameters: () => PathParameters;
  /** The accesses in force: those of the rules, then the route's. */
  readonly demands: readonly DecidedAccess<unknown>[];
}

/** Shared between requests. */
export interface Matched {
  /** Those of the rules. */
  readonly demands: readonly DecidedAccess<unknown>[];
  /** The most specific route of a method comes first. */
  readonly matches: readonly Match[];
  /** Whether the path is one of the service itself, however it is spelled. */
  readonly isOwn: boolean;
}

/** At a path without canonical form. */
const NOTHING: Matched = Object.freeze({ demands: [], matches: [], isOwn: false });

/**
 * Returns a function that finds the routes and rules at a path. No rule applies to `ownRoutes`. There is no
 * other route at their paths, and none at `ownPaths`. Trusts `routes` to have passed `routesProblems`.
 */
export function createRouter(
  routes: readonly Route[],
  rules: readonly PrefixRule[] = [],
  ownRoutes: readonly Route[] = [],
  ownPaths: readonly string[] = [],
): (path: string) => Matched {
  // The application may change its list.
  const kept = rules.slice();
  const index = indexOf(routes);
  const own: Index<CreateMatch | undefined> = indexOf(ownRoutes);
  for (const path of ownPaths) own.add(pathSegments(path), undefined);

  function search(path: string) {
    const texts = pathSegments(path);
    if (texts === undefined) return NOTHING;

    const taken = own.find(texts);
    const covering = taken[0] ? [] : kept.filter(({ prefix }) => isBelow(prefix, texts));
    const demands = Object.freeze(covering.map(({ access }) => access));

    const ofService = taken.filter((createMatch) => createMatch !== undefined);
    const fitting = taken.length > 0 ? ofService : index.find(texts);
    const matches = fitting.map((createMatch) => createMatch(texts, demands));
    return { demands, matches: Object.freeze(matches), isOwn: taken.length > 0 };
  }

  // For speed: a path that is spelled like a pattern without parameters is found at once.
  const patterns = [...ownRoutes, ...routes].map(({ pattern }) => pattern);
  const literal = patterns.filter((pattern) => !pattern.includes('{'));
  const found = new Map(literal.map((pattern) => [pattern, search(pattern)]));

  return function matchPath(path) {
    return found.get(path) ?? search(path);
  };
}

/** Whether the prefix of a rule or mount covers a path. Both are segments. */
export const isBelow = (prefix: readonly string[], texts: readonly string[]) =>
  prefix.every((text, at) => texts[at] === text);

type CreateMatch = (texts: readonly string[], demands: readonly DecidedAccess<unknown>[]) => Match;

function indexOf(routes: readonly Route[]) {
  const index = new Index<CreateMatch>();
  for (const route of routes) index.add(literalsOf(route), matchesOf(route));
  return index;
}

function matchesOf(route: Route): CreateMatch {
  const names = namesIn(route.pattern);

  return (texts, demands) => ({
    route,
    readParameters() {
      const values = names.map(([name, at]) => [name, texts[at]]);
      return Object.freeze(Object.fromEntries(values));
    },
    demands: Object.freeze([...demands, route.access]),
  });
}

/**
 * The problems of routes: unknown members, what is not a route or rule, and patterns that are invalid,
 * overlap, or match one of `ownPaths`. `mountProblems` has those of mounts.
 */
export function routesProblems(served: Routes, ownPaths: readonly string[] = [], isPolicy = false): string[] {
  const { routes, rules = [], ...others }: Routes = Object(served);
  if (!isPlain(Object(served))) return [NO_TABLE];

  const strange = Object.keys(others).map((name) => `${name}: is unknown here; write routes and rules`);
  if (!Array.isArray(routes) || !Array.isArray(rules)) return [...strange, 'routes and rules: must be lists'];

  return [
    ...strange,
    // Copied: `flatMap` would skip holes.
    ...problemsOfAll([...routes], ownPaths, isPolicy),
    ...[...rules].flatMap((rule) => (isRule(rule) ? [] : NO_RULE)),
  ];
}

/** In JavaScript, a route may be anything. */
export const isMount = (route: unknown): route is Mount => isRoute(route) && route.mounted !== undefined;

const NO_TABLE = 'routes and rules: must be members of a plain object';

const NO_ROUTE = 'is not a route; make one with get, post, put, patch or del of the same copy of the package';

const MISPLACED = 'a route of runForwardAuth takes upstream and no inputs; no other route takes upstream';

const NO_RULE = 'rules: must be a list of rules that under() makes';

const isPlaced = ({ query, body, handler }: Route, isPolicy: boolean) =>
  (handler === upstream) === isPolicy && !(isPolicy && (query ?? body));

function problemsOfAll(routes: readonly Route[], ownPaths: readonly string[], isPolicy: boolean) {
  const index = new Index<Patterned>();

  return routes.flatMap((route, at) => {
    if (!isRoute(route)) return `routes[${at}]: ${NO_ROUTE}`;
    if (isMount(route)) return [];

    const { method, pattern } = route;
    const literals = literalsOf(route);
    const ofPattern = literals ? ownProblems(literals, ownPaths) : [patternProblem(pattern)];
    const ofRoute = isPlaced(route, isPolicy) ? ofPattern : [MISPLACED, ...ofPattern];
    const problems = ofRoute.map((problem) => `${pattern}: ${problem}`);
    if (literals) {
      const one = { pattern, literals: [method, ...literals] };
      problems.push(...overlapProblems(index, one));
    }
    return problems.map((problem) => `${method} ${problem}`);
  });
}

const ownProblems = (literals: Literals, ownPaths: readonly string[]) =>
  ownPaths.flatMap((path) => {
    const texts = pathSegments(path);
    const isOwn = texts !== undefined && covers(texts, literals);
    return isOwn ? `matches ${path}, which the service serves itself; change the pattern` : [];
  });
