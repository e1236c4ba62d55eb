/* An event stream that a client can leave and come back to without missing an event: `Last-Event-ID` says where
   it was. It ends with the token of its client, and with a drain; event-client.mjs comes back by itself. Set
   EVENTS_KEPT to the number of events that a client may miss. */
import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { fail, get, json, needs, post, reply, runService, scope } from 'gatehouse-http';

const MOST_EVENTS = Number(process.env.EVENTS_KEPT ?? 1_000);
const SILENCE_MILLIS = 15_000;

const [mayRead, mayWrite] = [needs(scope('read:orders')), needs(scope('write:orders'))];

/** The last events. Replicas share them in a database or a queue. */
const events = [];
const changes = new EventEmitter().setMaxListeners(0);
let lastId = 0;

/** Of this process: the next one counts other events. */
const epoch = randomUUID();
const idOf = (at) => `id: ${epoch}-${at}`;

function publish(owner, order) {
  lastId += 1;
  events.push({ id: lastId, owner, order });
  if (events.length > MOST_EVENTS) events.shift();
  changes.emit('change');
}

/** Says something to every stream, so that no proxy takes one that is silent for dead. */
let beats = 0;
setInterval(() => changes.emit('change', (beats += 1)), SILENCE_MILLIS).unref();

const encode = (text) => Buffer.from(`${text}\n\n`);

/**
 * Reads the list at the pace of the client, which costs a number. A queue for each client would grow without end
 * behind one that does not read.
 */
async function* readEvents(owner, from, signal) {
  let at = from;
  let heard = beats;
  const isLost = () => at < lastId - events.length;
  yield encode('retry: 1000');
  // From now on the client knows where it is, even if it comes back before anything has happened.
  if (!isLost()) yield encode(`${idOf(at)}\nevent: open\ndata: {}`);
  while (!signal.aborted) {
    if (isLost()) {
      at = lastId;
      // Events are lost: the client has to ask for the orders again.
      yield encode(`${idOf(at)}\nevent: reset\ndata: {}`);
    } else if (at < lastId) {
      const { id, owner: whose, order } = events.at(at - lastId);
      at = id;
      // A stream is as private as the orders that it is about.
      if (whose === owner) yield encode(`${idOf(id)}\nevent: order\ndata: ${JSON.stringify(order)}`);
    } else if (heard < beats) {
      heard = beats;
      yield encode(`${idOf(at)}\n: still here`);
    } else {
      await once(changes, 'change', { signal });
    }
  }
}

function openStream({ caller, headers, signal }) {
  const given = headers['last-event-id'] ?? `${epoch}-${lastId}`;
  const [, itsEpoch, at] = /^(.+)-(\d{1,15})$/.exec(given) ?? [];
  // After a restart, a client knows of other events than this process.
  const isKnown = itsEpoch === epoch && Number(at) <= lastId;
  const stream = readEvents(caller.subject, isKnown ? Number(at) : -1, signal);
  return new Response(stream, { headers: { 'Content-Type': 'text/event-stream' } });
}

const routes = [
  get('/api/orders/events', mayRead, openStream),
  post('/api/orders', mayWrite, json(), ({ caller, body }) => {
    const { item } = Object(body);
    if (typeof item !== 'string') throw fail(422, 'unprocessable_content', 'item must be a text');
    publish(caller.subject, { item });
    return reply(202);
  }),
];

await runService({ routes });
