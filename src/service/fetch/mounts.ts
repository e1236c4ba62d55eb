// Finds the mount for a request that no route matches. Promises: the longest prefix counts; there is no 405
// at or below it; the service keeps its own paths.
import { pathSegments, type RequestFacts } from '../../verify/request/facts.ts';
import type { MatchedRoute } from '../../gate/decide.ts';
import type { Readers } from '../request/pipeline.ts';
import { isBelow, isMount, type Matched } from '../routes/router.ts';
import { routeOf, type Mount, type MountOptions, type Route } from '../routes/route.ts';

/** A `Request` cannot have them. */
const OTHER_METHODS = ['CONNECT', 'TRACE'];

/** For metrics and preflights. */
const USUAL_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** A mount as a route for each of the usual methods. */
export const describeRoutes = (routes: readonly Route[]): readonly MatchedRoute[] =>
  routes.flatMap((route) => {
    const { pattern } = route;
    return isMount(route) ? USUAL_METHODS.map((method) => ({ method, pattern })) : route;
  });

const lengthOf = ({ mounted }: Mount) => mounted.segments.length;

export function withMounts(readers: Readers, mounts: readonly Mount[], options: MountOptions): Readers {
  if (mounts.length === 0) return readers;

  const { matchRoute } = new MountSearch(readers.matchRoute, mounts, options);
  return { ...readers, matchRoute };
}

class MountSearch {
  readonly #matchRoute;
  readonly #longestFirst;
  readonly #options;
  /** By method and pattern. Methods are those that Node's parser knows. */
  readonly #made = new Map<string, Route>();

  constructor(matchRoute: Readers['matchRoute'], mounts: readonly Mount[], options: MountOptions) {
    this.#matchRoute = matchRoute;
    this.#longestFirst = mounts.toSorted((one, other) => lengthOf(other) - lengthOf(one));
    this.#options = options;
  }

  readonly matchRoute = (path: string, facts: RequestFacts) => {
    const matched = this.#matchRoute(path, facts);
    if (matched.isOwn) return matched;

    const wanted = facts.method === 'HEAD' ? 'GET' : facts.method;
    const isTaken = matched.matches.some(({ route }) => route.method === wanted);
    return isTaken ? matched : this.#matchMount(facts, wanted, matched);
  };

  #matchMount({ method, path }: RequestFacts, wanted: string, matched: Matched): Matched {
    const texts = pathSegments(path);
    if (texts === undefined) return matched;

    const mount = this.#longestFirst.find(({ mounted }) => isBelow(mounted.segments, texts));
    if (mount === undefined) return matched;
    // A URL would read these as another path.
    if (/[\\#]/.test(path) || OTHER_METHODS.includes(method)) return { ...matched, matches: [] };

    const route = this.#routeFor(mount, wanted);
    const match = { route, readParameters: () => ({}), demands: [...matched.demands, route.access] };
    return { ...matched, matches: [match] };
  }

  #routeFor(mount: Mount, method: string) {
    const key = `${method} ${mount.pattern}`;
    const route = this.#made.get(key) ?? routeOf(mount, method, this.#options);
    this.#made.set(key, route);
    return route;
  }
}

const POLICY = 'belongs to a service; a proxy passes requests to the server behind it';
const TWICE = 'has the prefix of another mount; join their handlers';
const OWN = 'is a path that the service serves itself; choose another prefix';

/** The problems of the mounts. */
export function mountProblems(mounts: readonly Mount[], ownPaths: readonly string[], isPolicy: boolean) {
  const keys = mounts.map(({ mounted }) => JSON.stringify(mounted.segments));
  const own = ownPaths.map((path) => JSON.stringify(pathSegments(path)));

  return keys.flatMap((key, index) => {
    const problems = isPolicy ? [POLICY] : [];
    if (own.includes(key)) problems.push(OWN);
    if (keys.indexOf(key) < index) problems.push(TWICE);
    return problems.map((problem) => `mount ${mounts[index]?.pattern}: ${problem}`);
  });
}
