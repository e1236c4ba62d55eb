// The vocabulary of routes: a route is a method, a path, its access, what it takes, and its handler;
// nothing else decides access. Promises: what a handler receives follows from its route by type, and what is
// wrong with a route or a rule is told before anything is served. Does not run a handler, which the pipeline
// does.
import type { Incoming } from './incoming.ts';
import { pathSegments } from '../../gate/path.ts';
import type { Caller } from '../../verify/caller.ts';
import type { Access } from '../../gate/access.ts';
import { prefixFaults } from './pattern.ts';
import type { BodyTaken, QueryTaken } from './inputs.ts';

/** A method that a route may have; `HEAD` goes to the route of `GET`. */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

type ParameterName<Pattern extends string> = Pattern extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParameterName<Rest>
  : never;

/** The texts at a pattern's parameters: `/api/orders/{id}` gives `{ id: string }`. */
export type PathParameters<Pattern extends string = string> = string extends Pattern
  ? Readonly<Record<string, string>>
  : { readonly [Name in ParameterName<Pattern>]: string };

/** What a handler receives. */
export interface RouteRequest<
  Admitted,
  Parameters = PathParameters,
  Query = URLSearchParams,
  Body = undefined,
> extends Omit<Incoming<Admitted>, 'parameters' | 'query' | 'body'> {
  readonly parameters: Parameters;
  /** The output of the route's query schema, or without one the query as it is. */
  readonly query: Query;
  readonly body: Body;
}

/** What a route runs; the type of its route's maker is what promises it more. */
export interface Handler {
  (incoming: Incoming<Caller | undefined>): unknown;
}

/** One route, made by the function of its method. */
export interface Route extends Readonly<ReturnType<ReturnType<typeof routeMaker>>> {}

/**
 * A rule for a prefix and everything under it, decided before what has no route is told; made by `under`.
 */
export interface PrefixRule {
  readonly prefix: readonly string[];
  readonly access: Access<Caller>;
  /** Why no service can have it, a line each. */
  readonly problems: readonly string[];
}

/** Who writes JavaScript may leave the access out, or give a guard. */
function accessFaults(access: unknown): readonly string[] {
  const { admit, faults = [] } = Object(access);
  return admit === undefined ? ['has no access, such as open or needs()'] : faults;
}

/**
 * Why no service can have it, beside what is wrong with its pattern; of a copy with parts of its own, too.
 */
export const routeFaults = ({ access, query, body, handler, faults }: Route) => [
  ...accessFaults(access),
  // Who writes JavaScript may leave holes in a list, or set something else there.
  ...(typeof handler === 'function' ? [] : ['is no route, as get, post, put, patch and del give']),
  ...[query, body].flatMap((taken) => taken?.fault ?? []),
  ...(faults ?? []),
];

/**
 * A rule for a prefix such as `/api/admin` and everything under it: decided for every path there, whether
 * or not there is a route, and beside other rules and the route's own access. What is no prefix stops the
 * start.
 *
 * @example runService({ routes, rules: [under('/api/admin', needs(scope('admin')))] });
 */
export function under(prefix: string, access: Access<Caller>): PrefixRule {
  const faults = [...accessFaults(access), ...prefixFaults(prefix)];
  const problems = faults.map((fault) => `under ${prefix}: ${fault}`);
  return { prefix: pathSegments(prefix) ?? [], access, problems };
}

/** All that a service answers. */
export interface Routes {
  readonly routes: readonly Route[];
  readonly rules?: readonly PrefixRule[];
}

type Taken = QueryTaken<unknown> | BodyTaken<unknown>;

/** What a route that reads may take, and what any other may: a query, a body, or both in this order. */
type ReadTakes = readonly [] | readonly [QueryTaken<unknown>];

type WriteTakes = ReadTakes | readonly [...ReadTakes, BodyTaken<unknown>];

type QueryOf<All> = All extends readonly [QueryTaken<infer Output>, ...unknown[]] ? Output : URLSearchParams;

type BodyOf<All> = All extends readonly [...unknown[], BodyTaken<infer Output>] ? Output : undefined;

/** Pattern, access, what the route takes, handler: whose request follows from the rest by type. */
type RouteMaker<Takes extends readonly Taken[], Result> = <
  Pattern extends string,
  Admitted extends Caller | undefined,
  All extends Takes,
>(
  pattern: Pattern,
  access: Access<Admitted>,
  ...rest: [
    ...taken: All,
    handler: (
      request: RouteRequest<Admitted, PathParameters<Pattern>, QueryOf<All>, BodyOf<All>>,
    ) => Result | PromiseLike<Result>,
  ]
) => Route;

type Part = Taken | (((request: never) => unknown) & { readonly takes?: never });

const isHandler = (part: Part): part is Handler => typeof part === 'function';

function routeMaker(method: Method) {
  return (pattern: string, access: Access<Caller | undefined>, ...rest: readonly Part[]) => {
    const query = rest.find((part) => part?.takes === 'query');
    // A client may send none with GET, and caches and proxies may drop it (RFC 9110 §9.3.1).
    const body = method === 'GET' ? undefined : rest.find((part) => part?.takes === 'body');
    const handler = rest.find(isHandler);
    const known = [query, body, handler].filter(Boolean);
    const isWhole = handler !== undefined && known.length === rest.length;
    const faults: readonly string[] = isWhole
      ? []
      : ['a route takes query(), but for GET json(), and a handler, nothing else'];

    return {
      method,
      pattern,
      access,
      /** What was given in vain when it was made. */
      faults,
      query,
      body,
      /** Runs once access is granted, and what the route takes is taken. */
      handler: handler ?? (() => {}),
    };
  };
}

/** A JSON object or array. A promise is none, but what it gives must be one; a `Date` is text in JSON. */
type Json = object & { readonly then?: never; readonly toJSON?: () => object };

/** Nothing is 204, which a GET cannot be. */
type WriteRoute = RouteMaker<WriteTakes, Json | void>;

/**
 * A route for GET, and so for HEAD, on a pattern such as `/api/orders/{id}`.
 *
 * @example get('/api/orders/{id}', authenticated, ({ parameters }) => orders.find(parameters.id))
 */
export const get: RouteMaker<ReadTakes, Json> = routeMaker('GET');

/**
 * A route for POST.
 *
 * @example post('/api/orders', authenticated, json(Order), ({ body }) => orders.add(body))
 */
export const post: WriteRoute = routeMaker('POST');

/**
 * A route for PUT.
 *
 * @example put('/api/orders/{id}', authenticated, json(Order), (request) => replaceOrder(request))
 */
export const put: WriteRoute = routeMaker('PUT');

/**
 * A route for PATCH.
 *
 * @example patch('/api/orders/{id}', authenticated, json(Change), (request) => changeOrder(request))
 */
export const patch: WriteRoute = routeMaker('PATCH');

/**
 * A route for DELETE.
 *
 * @example del('/api/orders/{id}', authenticated, ({ parameters }) => orders.remove(parameters.id))
 */
export const del: WriteRoute = routeMaker('DELETE');
