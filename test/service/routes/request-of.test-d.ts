/* A standalone handler gets the type of its request from the parts of its route. The compiler is the test:
   each marked line must be an error. */
import { authenticated, needs, open, optional } from '../../../src/gate/rules/access.ts';
import { scope } from '../../../src/gate/rules/guards.ts';
import { json, query, type BodyInput } from '../../../src/service/routes/inputs.ts';
import { get, patch, post, type RequestOf, type RouteRequest } from '../../../src/service/routes/route.ts';
import type { Schema } from '../../../src/service/routes/schema.ts';
import type { Caller } from '../../../src/verify/caller.ts';
import { is } from '../../support/same-type.ts';

interface Order {
  readonly item: string;
}

interface Page {
  readonly after: number;
}

declare const order: Schema<Order>;
declare const page: Schema<Page>;
const write = needs(scope('write'));
const body = json(order);
const paged = query(page);

type Request<
  Pattern extends string,
  Admitted = Caller,
  Query = URLSearchParams,
  Body = undefined,
> = RouteRequest<Admitted, { readonly [Name in Pattern]: string }, Query, Body>;

declare const requests: {
  plain: RequestOf<'/a/{id}'>;
  none: RequestOf<'/a'>;
  public: RequestOf<'/a', typeof open>;
  either: RequestOf<'/a', typeof optional>;
  guarded: RequestOf<'/{b}/{c}', typeof write>;
  paged: RequestOf<'/a', typeof write, typeof paged>;
  sent: RequestOf<'/a', typeof write, typeof body>;
  both: RequestOf<'/a/{id}', typeof write, typeof paged, typeof body>;
  written: RequestOf<'/a', typeof write, BodyInput<Order>>;
  any: RequestOf<string>;
};

export const same = [
  is<Request<'id'>>()(requests.plain),
  is<Request<never>>()(requests.none),
  is<Request<never, undefined>>()(requests.public),
  is<Request<never, Caller | undefined>>()(requests.either),
  is<Request<'b' | 'c'>>()(requests.guarded),
  is<Request<never, Caller, Page>>()(requests.paged),
  is<Request<never, Caller, URLSearchParams, Order>>()(requests.sent),
  is<Request<'id', Caller, Page, Order>>()(requests.both),
  is<Request<never, Caller, URLSearchParams, Order>>()(requests.written),
  is<RouteRequest<Caller>>()(requests.any),
];

const show = ({ caller, parameters }: RequestOf<'/a/{id}'>) => ({ [caller.subject]: parameters.id });

const change = (request: RequestOf<'/a/{id}', typeof write, typeof paged, typeof body>) => ({
  item: request.body.item,
  after: request.query.after,
});

const greet = ({ caller }: RequestOf<'/', typeof optional>) => ({ who: caller?.subject });

export const fitting = [
  get('/a/{id}', authenticated, show),
  // The route may have more parameters.
  patch('/a/{id}/{more}', write, show),
  patch('/a/{id}', write, paged, body, change),
  get('/', optional, greet),
  get('/', write, greet),
];

export const refused = [
  // @ts-expect-error the route's query is no longer as it was sent
  get('/a/{id}', authenticated, paged, show),
  // @ts-expect-error the pattern lacks a parameter
  get('/a/{name}', authenticated, show),
  // @ts-expect-error nobody may be the caller
  get('/a/{id}', open, show),
  // @ts-expect-error perhaps nobody is the caller
  get('/a/{id}', optional, show),
  // @ts-expect-error the route reads no query
  post('/a/{id}', write, body, change),
  // @ts-expect-error the route reads no body
  post('/a/{id}', write, paged, change),
  // @ts-expect-error the body is of another schema
  post('/a/{id}', write, paged, json(page), change),
];

// @ts-expect-error inputs stand in the order of the route
export type Swapped = RequestOf<'/a', typeof write, typeof body, typeof paged>;

// @ts-expect-error a schema alone does not say whether it is of a query or of a body
export type Bare = RequestOf<'/a', typeof write, typeof order>;

// @ts-expect-error a guard is not yet an access
export type Guarded = RequestOf<'/a', ReturnType<typeof scope>>;
