// The orders API with Express 5 and express-oauth2-jwt-bearer, as their documentation puts them together.
import { EventEmitter } from 'node:events';
import express from 'express';
import { auth, requiredScopes } from 'express-oauth2-jwt-bearer';

const { AUDIENCE, HOST, ISSUER, JWKS_URI, PORT } = process.env;
const orders = new Map([['1', { id: '1', item: 'tea' }]]);
const files = new Map();
const changes = new EventEmitter();
const draining = new AbortController();
const [mayRead, mayWrite] = [requiredScopes('read:orders'), requiredScopes('write:orders')];

const failure = (status, code, message) => Object.assign(new Error(message), { status, code });

function itemOf({ item } = {}, status) {
  if (typeof item !== 'string') throw failure(status, 'invalid', 'item must be text');
  return item;
}

function found(value) {
  if (value === undefined) throw failure(404, 'not_found', 'There is no such order');
  return value;
}

const csv = () => ['id,item', ...[...orders.values()].map(({ id, item }) => `${id},${item}`)].join('\n');

function save(id, item) {
  orders.set(id, { id, item });
  changes.emit('change', id);
  return orders.get(id);
}

const app = express();
app.disable('x-powered-by');
// Decision: the probe stands before the check of the token.
app.get('/healthz', (request, response) => response.json({ status: 'ok' }));
// Decision: everything below needs a token; a route above does not.
app.use(auth({ issuer: ISSUER, audience: AUDIENCE, jwksUri: JWKS_URI, tokenSigningAlg: 'RS256' }));
// Decision: bodies are parsed after the check, so that no other client can make the server read one.
const json = express.json();

app.get('/orders', mayRead, ({ query }, response) => {
  const item = itemOf(query, 400);
  response.json([...orders.values()].filter((order) => order.item.includes(item)));
});
// Decision: this route and the next stand before /orders/:id, which would take their paths.
app.get('/orders/export', mayRead, (request, response) => response.type('text/csv').send(csv()));
app.get('/orders/events', mayRead, (request, response) => {
  const send = (id) => response.write(`data: ${id}\n\n`);
  const end = () => response.end();
  changes.on('change', send);
  // Decision: a stream ends with a drain, which would otherwise never end.
  draining.signal.addEventListener('abort', end);
  // Decision: what a stream holds is released when its client leaves.
  response.on('close', () => {
    changes.off('change', send);
    draining.signal.removeEventListener('abort', end);
  });
  response.set({ 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' }).flushHeaders();
});
app.get('/orders/:id', mayRead, ({ params }, response) => response.json(found(orders.get(params.id))));
app.post('/orders', mayWrite, json, ({ body }, response) => {
  response.status(201).location('/orders/2').json(save('2', itemOf(body, 422)));
});
app.patch('/orders/:id', mayWrite, json, ({ params: { id }, body }, response) => {
  found(orders.get(id));
  response.json(save(id, itemOf(body, 422)));
});
app.delete('/orders/:id', mayWrite, ({ params: { id } }, response) => {
  found(orders.get(id));
  orders.delete(id);
  response.sendStatus(204);
});
// Decision: a file is of any type, and has another limit than JSON.
const raw = express.raw({ type: () => true, limit: 1_048_576 });
app.post('/orders/:id/file', mayWrite, raw, ({ params: { id }, body }, response) => {
  // Decision: a body that is missing is no Buffer.
  if (!Buffer.isBuffer(body)) throw failure(400, 'invalid_body', 'The file is missing');
  files.set(id, body);
  response.sendStatus(204);
});
app.get('/orders/:id/file', mayRead, ({ params: { id } }, response) => {
  const file = found(files.get(id));
  response.type('application/octet-stream').send(file);
});

// Decision: paths that nothing serves get JSON, and no page.
app.use(() => {
  throw failure(404, 'not_found', 'There is no such resource');
});
// Decision: errors get JSON with their challenge, and only those that are meant for clients their message.
app.use((error, request, response, next) => {
  if (response.headersSent) return next(error);
  const { status = 500, code = 'error', headers = {} } = error;
  if (status >= 500) console.error(error);
  const message = status < 500 ? error.message : 'The request failed';
  response.status(status).set(headers).json({ error: code, message });
});

const server = app.listen(PORT, HOST);
// Decision: a signal drains: no new connections, and the end once all requests have theirs.
process.once('SIGTERM', () => {
  draining.abort();
  server.close(() => process.exit(0));
});
