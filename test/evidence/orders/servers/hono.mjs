// The orders API with Hono on Node and jose, as their documentation puts them together.
import { EventEmitter, on } from 'node:events';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { createMiddleware } from 'hono/factory';
import { HTTPException } from 'hono/http-exception';
import { streamSSE } from 'hono/streaming';
import { validator } from 'hono/validator';
import { createRemoteJWKSet, errors, jwtVerify } from 'jose';

const { AUDIENCE, HOST, ISSUER, JWKS_URI, PORT } = process.env;
const orders = new Map([['1', { id: '1', item: 'tea' }]]);
const files = new Map();
const changes = new EventEmitter();
const draining = new AbortController();
const keys = createRemoteJWKSet(new URL(JWKS_URI));

// Decision: what a refused token gets, in the fields that RFC 6750 asks for.
function refuse(status, challenge, message) {
  const res = Response.json({ error: message }, { status, headers: { 'WWW-Authenticate': challenge } });
  throw new HTTPException(status, { res });
}

// Decision: how a token is found in the request.
async function claimsOf(context) {
  const [, token] = /^Bearer ([^ ]+)$/i.exec(context.req.header('Authorization') ?? '') ?? [];
  if (token === undefined) refuse(401, 'Bearer', 'Authentication required');
  try {
    // Decision: which algorithms, issuer and audience; without these, none of them is checked.
    const { payload } = await jwtVerify(token, keys, { issuer: ISSUER, audience: AUDIENCE, algorithms: ['RS256'] });
    return payload;
  } catch (error) {
    // Decision: errors that are about the token, and not about the provider.
    if (!(error instanceof errors.JOSEError) || error instanceof errors.JWKSTimeout) throw error;
    return refuse(401, 'Bearer error="invalid_token"', 'The token is invalid');
  }
}

// Decision: how scopes are read from a token, and what a token without one gets.
const needs = (scope) => createMiddleware(async (context, next) => {
  const { scope: allowed = '' } = await claimsOf(context);
  const challenge = `Bearer error="insufficient_scope", scope="${scope}"`;
  if (!String(allowed).split(' ').includes(scope)) refuse(403, challenge, 'The token lacks a scope');
  await next();
});
const [mayRead, mayWrite] = [needs('read:orders'), needs('write:orders')];

const itemIn = (target, status) => validator(target, ({ item }, context) =>
  typeof item === 'string' ? { item } : context.json({ error: 'item must be text' }, status));

function found(value) {
  if (value === undefined) throw new HTTPException(404, { message: 'There is no such order' });
  return value;
}

const csv = () => ['id,item', ...[...orders.values()].map(({ id, item }) => `${id},${item}`)].join('\n');

function save(id, item) {
  orders.set(id, { id, item });
  changes.emit('change', id);
  return orders.get(id);
}

const app = new Hono();
// Decision: limits, for JSON and for files: there is none otherwise. They stand after the check of the token.
const json = [bodyLimit({ maxSize: 102_400 }), itemIn('json', 422)];
const file = bodyLimit({ maxSize: 1_048_576 });

app.get('/healthz', (context) => context.json({ status: 'ok' }));
app.get('/orders', mayRead, itemIn('query', 400), (context) => {
  const { item } = context.req.valid('query');
  return context.json([...orders.values()].filter((order) => order.item.includes(item)));
});
// Decision: this route and the next stand before /orders/:id, which would take their paths.
app.get('/orders/export', mayRead, (context) => context.body(csv(), 200, { 'Content-Type': 'text/csv' }));
app.get('/orders/events', mayRead, (context) => streamSSE(context, async (stream) => {
  // Decision: a stream ends with a drain, which would otherwise never end, and when its client leaves.
  const ended = new AbortController();
  const end = () => ended.abort();
  draining.signal.addEventListener('abort', end);
  stream.onAbort(end);
  try {
    for await (const [id] of on(changes, 'change', { signal: ended.signal })) await stream.writeSSE({ data: id });
  } catch (error) {
    if (error.name !== 'AbortError') throw error;
  } finally {
    draining.signal.removeEventListener('abort', end);
  }
}));
app.get('/orders/:id', mayRead, (context) => context.json(found(orders.get(context.req.param('id')))));
app.post('/orders', mayWrite, ...json, (context) =>
  context.json(save('2', context.req.valid('json').item), 201, { Location: '/orders/2' }));
app.patch('/orders/:id', mayWrite, ...json, (context) => {
  found(orders.get(context.req.param('id')));
  return context.json(save(context.req.param('id'), context.req.valid('json').item));
});
app.delete('/orders/:id', mayWrite, (context) => {
  found(orders.get(context.req.param('id')));
  orders.delete(context.req.param('id'));
  return context.body(null, 204);
});
app.post('/orders/:id/file', mayWrite, file, async (context) => {
  files.set(context.req.param('id'), await context.req.arrayBuffer());
  return context.body(null, 204);
});
app.get('/orders/:id/file', mayRead, (context) =>
  context.body(found(files.get(context.req.param('id'))), 200, { 'Content-Type': 'application/octet-stream' }));

// Decision: errors get JSON, and only those that are meant for clients their message.
app.notFound((context) => context.json({ error: 'There is no such resource' }, 404));
app.onError((error, context) => {
  if (error instanceof HTTPException) return error.res ?? context.json({ error: error.message }, error.status);
  console.error(error);
  return context.json({ error: 'The request failed' }, 500);
});

const server = serve({ fetch: app.fetch, port: Number(PORT), hostname: HOST });
// Decision: a signal drains.
process.once('SIGTERM', () => {
  draining.abort();
  server.close(() => process.exit(0));
});
