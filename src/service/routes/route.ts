// How routes are written. Only a route gives access. Promises: the types of a handler's request follow from
// its route; a wrong route or rule throws. Does not run handlers: the pipeline does.
import type { HandlerRequest } from './handler-request.ts';
import { hideConstructor } from '../../verify/base/sealed.ts';
import type { Caller } from '../../verify/caller.ts';
import { isAccess, type DecidedAccess } from '../../gate/rules/access.ts';
import { parsePattern, parsePrefix } from './pattern.ts';
import type { BodyInput, QueryInput } from './inputs.ts';

/** A `GET` route also serves `HEAD`. */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

type ParameterName<Pattern extends string> = Pattern extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParameterName<Rest>
  : never;

/** `/api/orders/{id}` gives `{ id: string }`. */
export type PathParameters<Pattern extends string = string> = string extends Pattern
  ? Readonly<Record<string, string>>
  : { readonly [Name in ParameterName<Pattern>]: string };

/** What a handler receives. Read-only. */
export interface RouteRequest<
  Admitted,
  Parameters = PathParameters,
  Query = URLSearchParams,
  Body = undefined,
> extends Omit<HandlerRequest<Admitted>, 'parameters' | 'query' | 'body'> {
  readonly parameters: Parameters;
  /** The output of the route's query schema or, without one, the query itself. */
  readonly query: Query;
  readonly body: Body;
}

/** The handler of a route, as `Route` shows it. Untyped: the route's maker checks types. */
export interface Handler {
  (request: HandlerRequest<Caller<unknown> | undefined>): unknown;
}

/** What a mount needs of the options. */
export interface MountOptions {
  readonly publicUrl: string | undefined;
  readonly trustProxy: boolean;
  readonly bodyLimitBytes: number;
  /** Of a client certificate. */
  readonly hiddenField?: string | undefined;
}

/** What a mount has beside a route, whose method is `*`. */
export interface Mounted {
  readonly segments: readonly string[];
  readonly bind: (options: MountOptions) => Handler;
}

interface RouteParts {
  readonly method: string;
  readonly pattern: string;
  readonly access: DecidedAccess<Caller<unknown> | undefined>;
  readonly query?: QueryInput<unknown> | undefined;
  readonly body?: BodyInput<unknown> | undefined;
  readonly handler: Handler;
  readonly mounted?: Mounted | undefined;
}

class MadeRoute {
  /** Undefined where the pattern is invalid. */
  readonly #literals;
  readonly method;
  readonly pattern;
  readonly access;
  readonly query;
  readonly body;
  readonly handler;
  readonly mounted;

  constructor({ method, pattern, access, query, body, handler, mounted }: RouteParts) {
    this.method = method;
    this.pattern = pattern;
    this.#literals = parsePattern(pattern);
    this.access = access;
    this.query = query;
    this.body = body;
    this.handler = handler;
    this.mounted = mounted;
    Object.freeze(this);
  }

  static is(route: unknown): route is MadeRoute {
    return #literals in Object(route);
  }

  static readonly literalsOf = (route: MadeRoute) => route.#literals;
}

hideConstructor(MadeRoute);

/** Made by `get`, `post`, `put`, `patch`, `del` or `mount`. */
export interface Route extends MadeRoute {}

/** In JavaScript, a route may be anything. */
export const { is: isRoute, literalsOf } = MadeRoute;

/** The same route with another handler, and without inputs. */
export const withHandler = (route: Route, handler: Handler, access = route.access): Route =>
  new MadeRoute({
    ...route,
    access,
    query: undefined,
    body: undefined,
    handler,
    mounted: route.mounted && { ...route.mounted, bind: () => handler },
  });

/** A route for `mount`. Trusts that its parts are checked. */
export const mountedRoute = (prefix: string, access: RouteParts['access'], mounted: Mounted): Route =>
  new MadeRoute({
    method: '*',
    pattern: `${prefix === '/' ? '' : prefix}/**`,
    access,
    handler: () => {},
    mounted: Object.freeze(mounted),
  });

/** Made by `mount`. */
export interface Mount extends Route {
  readonly mounted: Mounted;
}

/** What a mount is to one method. */
export const routeOf = (mount: Mount, method: string, options: MountOptions): Route =>
  new MadeRoute({ ...mount, method, handler: mount.mounted.bind(options) });

class MadeRule {
  readonly #isGenuine = true;
  readonly prefix;
  readonly access;

  constructor(prefix: readonly string[], access: DecidedAccess<Caller<unknown>>) {
    this.prefix = prefix;
    this.access = access;
    Object.freeze(this);
  }

  static is(rule: unknown): rule is MadeRule {
    return #isGenuine in Object(rule);
  }
}

hideConstructor(MadeRule);

/** Made by `under`. */
export interface PrefixRule extends MadeRule {}

/** The same rule with another access. */
export const withAccess = ({ prefix }: PrefixRule, access: PrefixRule['access']): PrefixRule =>
  new MadeRule(prefix, access);

/** In JavaScript, a rule may be anything, even a route. */
export const isRule = MadeRule.is;

const NO_ACCESS = 'needs an access, such as authenticated or needs(), of the same copy of the package';

export function requireAccess(owner: string, access: unknown) {
  if (!isAccess(access)) throw new TypeError(`${owner}: ${NO_ACCESS}`);
}

/**
 * The server behind a proxy, in place of a handler. For `runForwardAuth` alone.
 *
 * @example get('/api/orders/{id}', needs(scope('read:orders')), upstream)
 */
export const upstream = () => ({});

/**
 * Guards a prefix and every path under it, even without a route, but not the service's own paths. Other rules
 * and the route's own access still apply. Throws a `TypeError` for anything but a prefix and an access.
 *
 * @example runService({ routes, rules: [under('/api/admin', needs(scope('admin')))] });
 */
export function under(prefix: string, access: DecidedAccess<Caller<unknown>>): PrefixRule {
  const owner = `under ${prefix}`;
  requireAccess(owner, access);
  return new MadeRule(parsePrefix(owner, prefix), access);
}

/** What is served: routes, and rules that `under` makes for all paths below a prefix. */
export interface Routes {
  readonly routes: readonly Route[];
  readonly rules?: readonly PrefixRule[] | undefined;
}

type Input = QueryInput<unknown> | BodyInput<unknown>;

/** Of `get`. Other routes may have a query, a body, or both in this order. */
type ReadInputs = readonly [] | readonly [QueryInput<unknown>];

type WriteInputs = ReadInputs | readonly [...ReadInputs, BodyInput<unknown>];

type QueryOf<All> = All extends readonly [QueryInput<infer Output>, ...unknown[]] ? Output : URLSearchParams;

type BodyOf<All> = All extends readonly [...unknown[], BodyInput<infer Output>] ? Output : undefined;

/**
 * The request of a handler that is declared apart from its route, by its pattern, access and inputs.
 *
 * @example
 * const show = ({ parameters }: RequestOf<'/api/orders/{id}'>) => orders.find(parameters.id);
 * const add = ({ body }: RequestOf<'/api/orders', typeof mayWrite, typeof order>) => orders.add(body);
 */
export type RequestOf<
  Pattern extends string,
  Guarding extends DecidedAccess<Caller<unknown> | undefined> = DecidedAccess<Caller>,
  First extends Input | undefined = undefined,
  Second extends BodyInput<unknown> | undefined = undefined,
> = RouteRequest<
  ReturnType<Guarding['admit']>,
  PathParameters<Pattern>,
  QueryOf<[First]>,
  First extends BodyInput<infer Output> ? Output : BodyOf<[Second]>
>;

type RouteMaker<Inputs extends readonly Input[], Result> = <
  Pattern extends string,
  Admitted extends Caller<unknown> | undefined,
  All extends Inputs,
>(
  pattern: Pattern,
  access: DecidedAccess<Admitted>,
  ...rest: [
    ...inputs: All,
    handler: (
      request: RouteRequest<Admitted, PathParameters<Pattern>, QueryOf<All>, BodyOf<All>>,
    ) => Result | PromiseLike<Result>,
  ]
) => Route;

type Part = Input | (((request: never) => unknown) & { readonly input?: never });

const isHandler = (part: Part): part is Handler => typeof part === 'function';

function routeMaker(method: Method) {
  return (pattern: string, access: DecidedAccess<Caller<unknown> | undefined>, ...rest: readonly Part[]) => {
    const query = rest.find((part) => part?.input === 'query');
    // RFC 9110 §9.3.1: intermediaries may drop a body of GET.
    const body = method === 'GET' ? undefined : rest.find((part) => part?.input === 'body');
    const handler = rest.find(isHandler);
    const known = [query, body, handler].filter(Boolean);
    const owner = `${method} ${pattern}`;
    requireAccess(owner, access);
    if (handler === undefined || known.length < rest.length) {
      throw new TypeError(
        `${owner}: takes only a handler and, before it, query() and json() or bytes() (not for GET)`,
      );
    }

    return new MadeRoute({ method, pattern, access, query, body, handler });
  };
}

/** An object or array, but not a promise or a `Date`, which becomes text. */
type Json = object & { readonly then?: never; readonly toJSON?: () => object };

/** Without a result, the response is 204; a GET needs one. */
type WriteRoute = RouteMaker<WriteInputs, Json | void>;

/**
 * A route for GET and HEAD. An object or array that the handler returns is the JSON body of a 200. Throws a
 * `TypeError` for anything but an access, inputs and a handler. An invalid pattern is reported at startup.
 *
 * @example get('/api/orders/{id}', authenticated, ({ parameters }) => orders.find(parameters.id))
 */
export const get: RouteMaker<ReadInputs, Json> = routeMaker('GET');

/**
 * A route for POST, which may accept a body. If the handler returns nothing: 204. Throws as `get` does.
 *
 * @example post('/api/orders', authenticated, json(Order), ({ body }) => orders.add(body))
 */
export const post: WriteRoute = routeMaker('POST');

/**
 * A route for PUT, which may accept a body. If the handler returns nothing: 204. Throws as `get` does.
 *
 * @example put('/api/orders/{id}', authenticated, json(Order), (request) => replaceOrder(request))
 */
export const put: WriteRoute = routeMaker('PUT');

/**
 * A route for PATCH, which may accept a body. If the handler returns nothing: 204. Throws as `get` does.
 *
 * @example patch('/api/orders/{id}', authenticated, json(Change), (request) => changeOrder(request))
 */
export const patch: WriteRoute = routeMaker('PATCH');

/**
 * A route for DELETE, which may accept a body. If the handler returns nothing: 204. Throws as `get` does.
 *
 * @example del('/api/orders/{id}', authenticated, ({ parameters }) => orders.remove(parameters.id))
 */
export const del: WriteRoute = routeMaker('DELETE');
