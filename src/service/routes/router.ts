// Path → routes and rules. Promises: the most specific route counts, in whatever order they are written; two
// of which neither is more specific stop startup.
import type { Demands } from '../../gate/rules/access.ts';
import { isPlain } from '../../verify/base/encoding.ts';
import { pathSegments } from '../../verify/request/facts.ts';
import { covers, Index, namesIn, patternProblem, type Literals } from './pattern.ts';
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
  readonly demands: Demands;
}

/** Shared between requests. */
export interface Matched {
  /** Those of the rules. */
  readonly demands: Demands;
  /** The most specific route of a method comes first. */
  readonly matches: readonly Match[];
  /** Whether the path is one of the service itself, however it is spelled. */
  readonly isOwn: boolean;
}

/** At a path without canonical form. */
const NOTHING = Object.freeze({ demands: [], matches: [], isOwn: false });

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
    const isOwn = taken.length > 0;
    const fitting = isOwn ? ofService : index.find(texts);
    const matches = fitting.map((createMatch) => createMatch(texts, demands));
    return { demands, matches: Object.freeze(matches), isOwn };
  }

  // For speed: a path that is spelled like a pattern without parameters is found at once.
  const found = new Map<string, Matched>();
  for (const { pattern } of [...ownRoutes, ...routes]) {
    if (!pattern.includes('{')) found.set(pattern, search(pattern));
  }

  return function matchPath(path) {
    return found.get(path) ?? search(path);
  };
}

/** Whether the prefix of a rule or mount covers a path. Both are segments. */
export const isBelow = (prefix: readonly string[], texts: readonly string[]) =>
  prefix.every((text, at) => texts[at] === text);

type CreateMatch = (texts: readonly string[], demands: Demands) => Match;

function indexOf(routes: readonly Route[]) {
  const index = new Index<CreateMatch>();
  for (const route of routes) index.add(literalsOf(route), matchesOf(route));
  return index;
}

function matchesOf(route: Route): CreateMatch {
  let names: ReturnType<typeof namesIn> | undefined;

  return (texts, demands) => ({
    route,
    readParameters() {
      // When first needed: with many routes, reading all names would prolong the start.
      names ??= namesIn(route.pattern);
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
  const areLists = Array.isArray(routes) && Array.isArray(rules);
  return [
    ...strange,
    ...(areLists ? [] : ['routes and rules: must be lists']),
    ...problemsOfAll(listed(routes), ownPaths, isPolicy),
    ...listed(rules).flatMap((rule) => (isRule(rule) ? [] : NO_RULE)),
  ];
}

/** Copied: `flatMap` would skip holes. */
function listed<Member>(list: readonly Member[]) {
  return Array.isArray(list) ? [...list] : [];
}

/** In JavaScript, a route may be anything. */
export const isMount = (route: unknown): route is Mount => isRoute(route) && route.mounted !== undefined;

const NO_TABLE = 'routes and rules: must be members of a plain object';

const NO_ROUTE = 'is not a route; make one with get, post, put, patch or del of the same copy of the package';

const MISPLACED = 'a route of runForwardAuth takes upstream and no inputs; no other route takes upstream';

const NO_RULE = 'rules: must be a list of rules that under() makes, of the same copy of the package';

const isPlaced = ({ query, body, handler }: Route, isPolicy: boolean) =>
  (handler === upstream) === isPolicy && !(isPolicy && (query ?? body));

function problemsOfAll(routes: readonly Route[], ownPaths: readonly string[], isPolicy: boolean) {
  const index = new Index<Route>();

  return routes.flatMap((route, at) => {
    if (!isRoute(route)) return `routes[${at}]: ${NO_ROUTE}`;
    if (isMount(route)) return [];

    const misplaced = isPlaced(route, isPolicy) ? [] : [`${route.pattern}: ${MISPLACED}`];
    const problems = [...misplaced, ...problemsOfPattern(route, ownPaths, index)];
    return problems.map((problem) => `${route.method} ${problem}`);
  });
}

function problemsOfPattern(route: Route, ownPaths: readonly string[], index: Index<Route>) {
  const literals = literalsOf(route);
  if (literals === undefined) return [`${route.pattern}: ${patternProblem(route.pattern)}`];

  return [...ownProblems(route, literals, ownPaths), ...overlapProblems(route, literals, index)];
}

const ownProblems = ({ pattern }: Route, literals: Literals, ownPaths: readonly string[]) =>
  ownPaths.flatMap((path) => {
    const texts = pathSegments(path);
    const isOwn = texts !== undefined && covers(texts, literals);
    return isOwn ? `${pattern}: matches ${path}, which the service serves itself; change the pattern` : [];
  });

/** Adds a route. For each before it, if neither is more specific, names a path that both match. */
function overlapProblems(route: Route, literals: Literals, index: Index<Route>) {
  const inMethod = [route.method, ...literals];
  const earlier = index.find(inMethod);
  index.add(inMethod, route);

  return earlier.flatMap((other) => {
    const others = literalsOf(other) ?? [];
    if (covers(others, literals) !== covers(literals, others)) return [];

    const texts = literals.map((literal, at) => literal ?? others[at] ?? 'x');
    const both = `both match /${texts.map(encodeURIComponent).join('/')}, and neither is more specific`;
    return `${other.pattern} and ${route.pattern}: ${both}; give one of them another path`;
  });
}
