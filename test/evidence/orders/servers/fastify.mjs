// The orders API with Fastify, @fastify/jwt and get-jwks, as their documentation puts them together.
import { EventEmitter, on } from 'node:events';
import { Readable } from 'node:stream';
import jwt from '@fastify/jwt';
import Fastify from 'fastify';
import buildGetJwks from 'get-jwks';

const { AUDIENCE, HOST, ISSUER, PORT } = process.env;
const orders = new Map([['1', { id: '1', item: 'tea' }]]);
const files = new Map();
const changes = new EventEmitter();
const draining = new AbortController();

const item = { type: 'object', required: ['item'], properties: { item: { type: 'string' } } };

const failure = (statusCode, message) => Object.assign(new Error(message), { statusCode });

function found(value) {
  if (value === undefined) throw failure(404, 'There is no such order');
  return value;
}

const csv = () => ['id,item', ...[...orders.values()].map(({ id, item }) => `${id},${item}`)].join('\n');

function save(id, item) {
  orders.set(id, { id, item });
  changes.emit('change', id);
  return orders.get(id);
}

async function* events() {
  // Decision: Fastify sends the head with the first bytes, so there have to be some.
  yield ': open\n\n';
  try {
    for await (const [id] of on(changes, 'change', { signal: draining.signal })) yield `data: ${id}\n\n`;
  } catch (error) {
    // Decision: a stream ends with a drain, which would otherwise never end; this is its proper end.
    if (error.name !== 'AbortError') throw error;
  }
}

const app = Fastify();
// Decision: whose keys are fetched, since the issuer is read from a token that is not verified yet.
const getJwks = buildGetJwks({ issuersWhitelist: [ISSUER] });
await app.register(jwt, {
  decode: { complete: true },
  secret: (request, { header: { kid, alg }, payload: { iss } }) => getJwks.getPublicKey({ kid, alg, domain: iss }),
  // Decision: which algorithms, issuer and audience; without these, none of them is checked.
  verify: { algorithms: ['RS256'], allowedIss: ISSUER, allowedAud: AUDIENCE },
});

// Decision: how scopes are read from a token, and what a token without one gets.
const needs = (scope) => async (request) => {
  await request.jwtVerify();
  const { scope: allowed = '' } = request.user;
  if (!String(allowed).split(' ').includes(scope)) throw failure(403, 'The token lacks a scope');
};
// Decision: the check is a hook that runs before the body is read.
const [mayRead, mayWrite] = ['read:orders', 'write:orders'].map((scope) => ({ onRequest: needs(scope) }));

app.get('/healthz', async () => ({ status: 'ok' }));
app.get('/orders', { ...mayRead, schema: { querystring: item } }, async ({ query }) =>
  [...orders.values()].filter((order) => order.item.includes(query.item)));
app.get('/orders/export', mayRead, async (request, reply) => reply.type('text/csv').send(csv()));
app.get('/orders/events', mayRead, async (request, reply) =>
  reply.type('text/event-stream').send(Readable.from(events())));
app.get('/orders/:id', mayRead, async ({ params }) => found(orders.get(params.id)));
app.post('/orders', { ...mayWrite, schema: { body: item } }, async ({ body }, reply) =>
  reply.code(201).header('Location', '/orders/2').send(save('2', body.item)));
app.patch('/orders/:id', { ...mayWrite, schema: { body: item } }, async ({ params: { id }, body }) =>
  found(orders.get(id)) && save(id, body.item));
app.delete('/orders/:id', mayWrite, async ({ params: { id } }, reply) => {
  found(orders.get(id));
  orders.delete(id);
  return reply.code(204).send();
});
// Decision: files have a parser of their own, in a scope of its own: the rest of the API speaks JSON.
await app.register(async (scope) => {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', { parseAs: 'buffer' }, async (request, body) => body);
  // Decision: the limit of a file.
  scope.post('/orders/:id/file', { ...mayWrite, bodyLimit: 1_048_576 }, async ({ params: { id }, body }, reply) => {
    // Decision: a body that is missing is no Buffer.
    if (!Buffer.isBuffer(body)) throw failure(400, 'The file is missing');
    files.set(id, body);
    return reply.code(204).send();
  });
});
app.get('/orders/:id/file', mayRead, async ({ params: { id } }, reply) =>
  reply.type('application/octet-stream').send(found(files.get(id))));

app.addHook('preClose', async () => draining.abort());
await app.listen({ port: PORT, host: HOST });
// Decision: a signal drains.
process.once('SIGTERM', () => app.close().then(() => process.exit(0)));
