/* The webhook of a payment provider that signs as Standard Webhooks says: the fields webhook-id,
   webhook-timestamp and webhook-signature. Others differ in the names of the fields, and in what is signed.
   Set WEBHOOK_SECRET to the secret that the provider shows, such as whsec_…. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { bytes, fail, get, needs, noContent, open, post, runService, scope } from 'gatehouse-http';

const WINDOW_SECONDS = 300;
const MOST_EVENTS = 100_000;

const key = Buffer.from((process.env.WEBHOOK_SECRET ?? '').replace(/^whsec_/, ''), 'base64');
if (key.length < 24) throw new Error('WEBHOOK_SECRET must be the secret of the webhook, of 24 bytes or more');

/** In a service with a database, these are tables, and the event's ID is inserted in the same transaction. */
const payments = new Map();
const events = new Map();

/** Over the bytes as they came: JSON that was parsed and written again has another signature. */
function isSigned({ headers, body, nowMillis }) {
  const { 'webhook-id': id = '', 'webhook-timestamp': sent = '', 'webhook-signature': given = '' } = headers;
  if (id === '' || !/^\d{1,12}$/.test(sent)) return false;
  if (Math.abs(nowMillis / 1000 - Number(sent)) > WINDOW_SECONDS) return false;

  const expected = createHmac('sha256', key).update(`${id}.${sent}.`).update(body).digest();
  // Several, while the provider changes its secret.
  return given.split(' ').some((signature) => isSame(expected, signature));
}

function isSame(expected, signature) {
  const [, text] = /^v1,([\w+/]+=*)$/.exec(signature) ?? [];
  const found = Buffer.from(text ?? '', 'base64');
  // It throws for another length.
  return found.length === expected.length && timingSafeEqual(found, expected);
}

function parse(body) {
  try {
    const { type, data } = JSON.parse(Buffer.from(body).toString());
    if (typeof type === 'string' && typeof data.id === 'string') return { type, data };
  } catch {}
  throw fail(400, 'invalid_body', 'The event must have a type, and data with an id');
}

async function handle({ type, data }) {
  if (type === 'payment.paid') payments.set(data.id, { id: data.id, status: 'paid', events: countOf(data.id) + 1 });
}

const countOf = (id) => payments.get(id)?.events ?? 0;

/** A provider sends an event again until it gets a 2xx, with the same ID: it must have its effect once. */
async function receive(request) {
  // One response for every reason, so that an attacker learns nothing from it.
  if (!isSigned(request)) throw fail(400, 'invalid_signature', 'The signature is missing, wrong or too old');

  const id = request.headers['webhook-id'];
  const event = parse(request.body);
  // A second delivery waits for the first, and shares its outcome.
  const handled = events.get(id) ?? handle(event);
  events.set(id, handled);
  if (events.size > MOST_EVENTS) events.delete(events.keys().next().value);
  try {
    await handled;
  } catch (error) {
    events.delete(id);
    throw error;
  }
  return noContent();
}

const routes = [
  // Open on purpose: the provider has no token. Its signature is checked instead.
  post('/hooks/payments', open, bytes({ types: ['application/json'], limitBytes: 65_536 }), receive),
  get('/api/payments/{id}', needs(scope('read:payments')), ({ parameters }) =>
    payments.get(parameters.id) ?? fail(404, 'not_found', 'There is no such payment')),
];

await runService({ routes });
