// Path → routes and rules. Promises: overlapping routes stop the start.
import { pathSegments } from '../../gate/path.ts';
import { isMatch, overlapFault, parsePattern, patternFault, type Segments } from './pattern.ts';
import { routeFaults, type PathParameters, type PrefixRule, type Route, type Routes } from './route.ts';

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
    ...routeProblems([...routes], ownPaths),
    ...rules.flatMap((rule) => Object(rule).problems ?? 'rules: must be a list of what under gives'),
  ];
}

function routeProblems(routes: readonly Route[], ownPaths: readonly string[]) {
  const copies = routes.map((route) => ({ ...route }));
  const parsed = copies.map((route) => ({ ...route, segments: parsePattern(route.pattern) }));
  return parsed.flatMap(({ segments, ...route }, index) => {
    const { method, pattern } = route;
    const shadow = segments && shadowFaults(segments, ownPaths);
    const faults = [...routeFaults(route), ...(shadow ?? [patternFault(pattern)])];
    const problems = faults.map((fault) => `${method} ${pattern}: ${fault}`);

    const earlierRoutes = parsed.slice(0, index).filter((route) => route.method === method);
    const overlaps = earlierRoutes.flatMap((earlier) => overlapFault(earlier, { pattern, segments }) ?? []);
    return [...problems, ...overlaps.map((fault) => `${method} ${fault}`)];
  });
}

/** Patterns that match a path of the service itself, whatever the method. */
const shadowFaults = (segments: Segments, ownPaths: readonly string[]) =>
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
