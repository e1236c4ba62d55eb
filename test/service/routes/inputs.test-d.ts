/* The types of what a handler receives and may return follow from its route. The compiler is the test: each
   marked line must be an error. */
import { authenticated, needs, open, optional } from '../../../src/gate/rules/access.ts';
import { scope } from '../../../src/gate/rules/guards.ts';
import { recentLogin } from '../../../src/gate/rules/recent-login.ts';
import { mount } from '../../../src/service/fetch/mount.ts';
import type { TestIssuerOptions } from '../../../src/testing/test-issuer.ts';
import {
  del,
  get,
  patch,
  post,
  put,
  type RouteRequest,
  type Routes,
} from '../../../src/service/routes/route.ts';
import { bytes, json, query } from '../../../src/service/routes/inputs.ts';
import { created, fail, noContent, reply } from '../../../src/service/routes/handler-reply.ts';
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

export const inferred = [
  get('/a', open, ({ caller }) => is<undefined>()(caller)),
  get('/b', optional, ({ caller }) => is<Caller | undefined>()(caller)),
  get('/c', authenticated, ({ caller }) => is<Caller>()(caller)),
  get('/{d}/x/{e}', open, ({ parameters }) => is<{ readonly d: string; readonly e: string }>()(parameters)),
  get('/f', open, ({ query }) => is<URLSearchParams>()(query)),
  get('/g', open, ({ body }) => is<undefined>()(body)),
  get('/h', open, query(page), ({ query }) => is<Page>()(query)),
  post('/i', write, json(order), ({ body }) => is<Order>()(body)),
  post('/j', write, json(), ({ body }) => is<unknown>()(body)),
  post('/k', write, json(undefined, { limitBytes: 10 }), ({ body }) => is<unknown>()(body)),
  post('/o', write, bytes(), ({ body }) => is<Uint8Array & { readonly buffer: ArrayBuffer }>()(body)),
  post('/p', write, query(page), bytes({ limitBytes: 10 }), ({ body }) =>
    is<Uint8Array & { readonly buffer: ArrayBuffer }>()(body),
  ),
  put('/l', write, query(page), json(order), ({ query, body }) =>
    is<{ query: Page; body: Order }>()({ query, body }),
  ),
  patch('/{m}', write, query(page), json(order, { types: ['application/merge-patch+json'] }), (request) =>
    is<RouteRequest<Caller, { readonly m: string }, Page, Order>>()(request),
  ),
  del('/n', open, json(order), ({ body }) => is<Order>()(body)),
];

export const given = [
  get('/a', open, () => []),
  get('/b', open, async () => ({ b: 1 })),
  get('/c', open, () => (Math.random() > 1 ? { c: 1 } : fail(404, 'not_found', 'None'))),
  get('/d', open, async () => reply(200, [])),
  post('/e', open, () => created('/e/1')),
  post('/f', open, () => {}),
  post('/g', open, async () => {}),
  del('/h', open, async () => noContent()),
  del('/i', open, () => (Math.random() > 1 ? undefined : { i: 1 })),
  get('/j', open, (): PromiseLike<object> => Promise.resolve({})),
  get('/l', open, () => new Response('l')),
  get('/m', open, async () => Response.json([])),
  get('/k', open, () => ({ toJSON: () => ({ k: 1 }) })),
];

declare const maybe: { readonly size: number | undefined; readonly types: [string] | undefined };

/** What is `undefined` is absent, as in the options of a gate, also with `exactOptionalPropertyTypes`. */
export const absent = [
  post('/a', write, json(order, { limitBytes: maybe.size, types: maybe.types }), () => {}),
  post('/b', write, bytes({ limitBytes: maybe.size, types: maybe.types }), () => {}),
  mount('/c', write, () => new Response(), { limitBytes: maybe.size }),
  get('/d', needs(recentLogin({ acr: maybe.types, maxAgeSeconds: maybe.size })), () => ({})),
];

export const served: Routes = { routes: absent, rules: undefined };

export const tested: TestIssuerOptions = { domain: undefined, audience: undefined, algorithm: undefined };

export const refused = [
  // @ts-expect-error a GET has no body
  get('/a', open, json(order), () => ({})),
  // @ts-expect-error a GET has no body
  get('/a', open, bytes(), () => ({})),
  // @ts-expect-error bytes takes no schema
  post('/a', open, bytes(order), () => ({})),
  // @ts-expect-error a GET gives something
  get('/b', open, () => {}),
  // @ts-expect-error a GET gives something, later too
  get('/c', open, async () => {}),
  // @ts-expect-error a GET gives something every time
  get('/d', open, () => (Math.random() > 1 ? { d: 1 } : undefined)),
  // @ts-expect-error a GET gives something every time, later too
  get('/e', open, async () => (Math.random() > 1 ? { e: 1 } : undefined)),
  // @ts-expect-error null is no response
  get('/f', open, () => null),
  // @ts-expect-error a text is no JSON object or array, nor is the promise of one
  post('/g', open, async () => 'text'),
  // @ts-expect-error nor is a number
  post('/h', open, () => 5),
  // @ts-expect-error a date is text in JSON
  get('/u', open, () => new Date()),
  // @ts-expect-error later too
  post('/v', open, async () => new Date()),
  // @ts-expect-error the pattern lacks this parameter
  get('/{i}', open, ({ parameters }) => ({ i: parameters.other })),
  // @ts-expect-error the pattern has no parameter
  get('/j', open, ({ parameters }) => ({ j: parameters.id })),
  // @ts-expect-error the route takes no body
  post('/k', open, ({ body }) => ({ k: body.item })),
  // @ts-expect-error without a schema nothing is known of the body
  post('/l', open, json(), ({ body }) => ({ l: body.item })),
  // @ts-expect-error the schema's output has no such member
  post('/m', open, json(order), ({ body }) => ({ m: body.other })),
  // @ts-expect-error the query has a schema, and so is no URLSearchParams
  get('/n', open, query(page), ({ query }) => ({ n: query.get('after') })),
  // @ts-expect-error no caller on an open route, whatever it takes
  post('/o', open, json(order), ({ caller }) => ({ o: caller.subject })),
  // @ts-expect-error perhaps no caller on an optional route
  post('/p', optional, json(order), ({ caller }) => ({ p: caller.subject })),
  // @ts-expect-error one body
  post('/q', open, json(order), json(order), () => ({})),
  // @ts-expect-error the query is decided first, and is named first
  post('/r', open, json(order), query(page), () => ({})),
  // @ts-expect-error a route has a handler
  post('/s', open, json(order)),
  // @ts-expect-error a schema is not yet what a route takes
  post('/t', open, order, () => ({})),
];

export const wrong = [
  // @ts-expect-error without a schema the body's type cannot be chosen
  () => json<Order>(),
  // @ts-expect-error a query has a schema
  () => query(),
  // @ts-expect-error a schema has ~standard
  () => json({ parse: (value: unknown) => value }),
  // @ts-expect-error of version 1
  () => json({ '~standard': { version: 2, validate: () => ({ value: 1 }) } }),
  // @ts-expect-error at least one media type
  () => json(order, { types: [] }),
  // @ts-expect-error a limit in bytes
  () => json(order, { limitBytes: '10' }),
  // @ts-expect-error a body is an object or bytes
  () => reply(200, 'text'),
  // @ts-expect-error a field has one value, which is text
  () => reply(200, {}, { 'X-Count': 5 }),
  // @ts-expect-error a failure has a message
  () => fail(404, 'not_found'),
];
