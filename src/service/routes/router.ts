// Routes → route, by the path of a request. Promises: routes that overlap stop the start.
import { pathSegments } from '../../gate/path.ts';
import { isMatch, overlapFault, parsePattern, patternFault, type Segments } from './pattern.ts';
import { routeFaults, type PathParameters, type PrefixRule, type Route, type Routes } from './route.ts';

/** What stands at a path; shared by all who ask for it. */
export type Place = NonNullable<ReturnType<ReturnType<typeof createRouter>>>;

/**
 * Gives what finds the routes whose pattern of literals and `{parameters}` a path matches, and the rules
 * whose prefix covers it, but not where the service has routes of its own; `undefined` when the path has no
 * canonical form. The routes are those in which `routesProblems` finds nothing.
 */
export function createRouter(
  routes: readonly Route[],
  rules: readonly PrefixRule[] = [],
  ownRoutes: readonly Route[] = [],
) {
  // The list may be changed afterwards, as that of the routes may.
  const kept = rules.slice();
  const all = [...ownRoutes, ...routes];
  const parsed = all.map((route) => ({ route, segments: parsePattern(route.pattern) ?? [] }));

  function search(path: string) {
    const texts = pathSegments(path);
    if (texts === undefined) return undefined;

    const isCovering = ({ prefix }: PrefixRule) => prefix.every((text, at) => texts[at] === text);
    const found = parsed.filter(({ segments }) => isMatch(segments, texts));
    const matches = found.map(({ route, segments }) => {
      const parameters = parametersOf(segments, texts);
      return { route, parameters };
    });
    const isOwn = matches.some(({ route }) => ownRoutes.includes(route));
    return {
      /** Those whose prefix covers it. */
      rules: Object.freeze(isOwn ? [] : kept.filter(isCovering)),
      /** The routes whose pattern it matches, at most one for each method. */
      matches: Object.freeze(matches),
    };
  }

  /** What stands at the paths that are spelled like a pattern, found beforehand. */
  const places = new Map(all.map(({ pattern }) => [pattern, search(pattern)]));
  return (path: string) => places.get(path) ?? search(path);
}

/**
 * Why routes cannot be served by a service that answers at these paths itself: what among them is no route
 * or rule, or is called otherwise, what is wrong with each, patterns that are none or match such a path,
 * and routes of one method that overlap, each with a common path.
 */
export function routesProblems(served: Routes, ownPaths: readonly string[] = []): string[] {
  const { routes, rules = [], ...others }: Routes = Object(served);
  const strange = Object.keys(others).map((name) => `${name}: is unknown here; write routes and rules`);
  if (!Array.isArray(routes) || !Array.isArray(rules)) return [...strange, 'routes and rules: must be lists'];

  return [
    ...strange,
    // A copy has no holes.
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

/** What is wrong with a pattern of these segments where the service answers itself, whatever the method. */
const shadowFaults = (segments: Segments, ownPaths: readonly string[]) =>
  ownPaths.flatMap((path) => {
    const texts = pathSegments(path);
    const isShadowed = texts !== undefined && isMatch(segments, texts);
    return isShadowed ? `matches ${path}, where the service answers itself; give it another` : [];
  });

/** The texts of a path at the parameters of a pattern that it matches. */
function parametersOf(segments: Segments, texts: readonly string[]): PathParameters {
  const values = segments.flatMap(({ name }, at) => {
    const text = texts[at] ?? '';
    return name === undefined ? [] : [[name, text] as const];
  });
  return Object.freeze(Object.fromEntries(values));
}
