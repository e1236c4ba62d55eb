import { EventEmitter, on } from 'node:events';
import { bytes, created, del, fail, get, json, needs, noContent, patch, post, query, scope } from 'gatehouse-http';

const orders = new Map([['1', { id: '1', item: 'tea' }]]);
const files = new Map();
const changes = new EventEmitter();
const [mayRead, mayWrite] = [needs(scope('read:orders')), needs(scope('write:orders'))];

// With zod: z.object({ item: z.string() })
const Item = { '~standard': { version: 1, validate: (given) =>
  typeof given?.item === 'string' ? { value: { item: given.item } } : { issues: [{ message: 'must be text', path: ['item'] }] } } };

function found(value) {
  if (value === undefined) throw fail(404, 'not_found', 'There is no such order');
  return value;
}

const csv = () => ['id,item', ...[...orders.values()].map(({ id, item }) => `${id},${item}`)].join('\n');

function save(id, item) {
  orders.set(id, { id, item });
  changes.emit('change', id);
  return orders.get(id);
}

// Decision: what a stream holds is released at its end.
async function* eventsUntil(signal) {
  for await (const [id] of on(changes, 'change', { signal })) yield new TextEncoder().encode(`data: ${id}\n\n`);
}

const as = (type, body) => new Response(body, { headers: { 'Content-Type': type } });

export const routes = [
  get('/orders', mayRead, query(Item), (request) =>
    [...orders.values()].filter(({ item }) => item.includes(request.query.item))),
  get('/orders/export', mayRead, () => as('text/csv', csv())),
  get('/orders/events', mayRead, ({ signal }) => as('text/event-stream', ReadableStream.from(eventsUntil(signal)))),
  get('/orders/{id}', mayRead, ({ parameters: { id } }) => found(orders.get(id))),
  post('/orders', mayWrite, json(Item), ({ body }) => created('/orders/2', save('2', body.item))),
  patch('/orders/{id}', mayWrite, json(Item), ({ parameters: { id }, body }) => found(orders.get(id)) && save(id, body.item)),
  del('/orders/{id}', mayWrite, ({ parameters: { id } }) => (orders.delete(id) ? noContent() : found())),
  // Decision: the limit of a file.
  post('/orders/{id}/file', mayWrite, bytes({ limitBytes: 1_048_576 }), ({ parameters: { id }, body }) => found(orders.get(id)) && void files.set(id, body)),
  get('/orders/{id}/file', mayRead, ({ parameters: { id } }) => as('application/octet-stream', found(files.get(id)))),
];
