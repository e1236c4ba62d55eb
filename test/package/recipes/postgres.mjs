/* A service with PostgreSQL: a pool that opens before the service listens and closes after its last response, an
   audit log of every request, and errors of one's own. Set DATABASE_URL. */
import pg from 'pg';
import { created, fail, get, json, needs, post, runService, scope } from 'gatehouse-http';

/** For a first try. Several replicas leave this to a migration. */
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS orders
    (id bigserial PRIMARY KEY, owner text NOT NULL, item text NOT NULL, UNIQUE (owner, item));
  CREATE TABLE IF NOT EXISTS audit
    (at timestamptz, method text, path text, status int, reason text, caller text, address text)`;

const MOST_EVENTS = 10_000;
const BATCH_EVENTS = 500;

let pool;
let timer;

const report = (message, fields) => console.log(JSON.stringify({ message, ...fields }));

async function onStart() {
  pool = new pg.Pool({
    connectionString: process.env.DATABASE_URL,
    max: 10,
    // While the database is down, requests would otherwise wait for ever.
    connectionTimeoutMillis: 2_000,
    statement_timeout: 5_000,
    query_timeout: 6_000,
  });
  // A connection that breaks while it is idle.
  pool.on('error', ({ code }) => report('database connection lost', { code }));
  // If this fails, the process ends with 1 and has not listened.
  await pool.query(SCHEMA);
  timer = setInterval(() => flush().catch(() => {}), 1_000);
}

async function onStop() {
  clearInterval(timer);
  try {
    await flush();
  } finally {
    await pool.end();
  }
}

/** Connections (08), resources (53), an operator (57), and what has no SQLSTATE: the network, and time limits. */
const isAway = ({ code = '' }) => !/^[\dA-Z]{5}$/.test(code) || /^(08|53|57)/.test(code);

async function query(text, values) {
  try {
    return (await pool.query(text, values)).rows;
  } catch (error) {
    // A bug, for `onError`.
    if (!isAway(error)) throw error;
    report('database away', { code: error.code, reason: error.message });
    throw fail(503, 'temporarily_unavailable', 'The service cannot reach its database');
  }
}

async function readOrder({ caller, parameters: { id } }) {
  // The owner is part of the question: the order of another caller does not exist.
  const text = 'SELECT id, item FROM orders WHERE id = $1 AND owner = $2';
  const [order] = /^\d{1,18}$/.test(id) ? await query(text, [id, caller.subject]) : [];
  return order ?? fail(404, 'not_found', 'There is no such order');
}

async function addOrder({ caller, body }) {
  const { item } = Object(body);
  // PostgreSQL's texts have no NUL.
  if (typeof item !== 'string' || item.length > 100 || item.includes('\0')) {
    throw fail(422, 'unprocessable_content', 'item must be a text of at most 100 characters');
  }

  const text = 'INSERT INTO orders (owner, item) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING id, item';
  const [order] = await query(text, [caller.subject, item]);
  if (order === undefined) throw fail(409, 'conflict', 'You have ordered this already');
  return created(`/api/orders/${order.id}`, order);
}

/** Nothing waits for the audit log: while the database is down, events are kept up to a bound. */
const events = [];
let dropped = 0;
let written = Promise.resolve();

function record({ method, path, status, reason, caller, clientAddress }) {
  if (events.length >= MOST_EVENTS) dropped += 1;
  else events.push([new Date(), method, path, status, reason, caller?.subject ?? null, clientAddress]);
}

const AUDIT = `INSERT INTO audit SELECT * FROM unnest(
  $1::timestamptz[], $2::text[], $3::text[], $4::int[], $5::text[], $6::text[], $7::text[])`;

/** One batch after the other, in order. */
const flush = () => (written = written.catch(() => {}).then(writeEvents));

async function writeEvents() {
  while (events.length > 0) {
    const batch = events.slice(0, BATCH_EVENTS);
    try {
      await pool.query(AUDIT, batch[0].map((_, column) => batch.map((event) => event[column])));
    } catch (error) {
      report('audit log failed', { code: error.code, waiting: events.length });
      if (isAway(error)) throw error;
      // It would fail for ever, and the rest behind it.
      dropped += batch.length;
    }
    events.splice(0, batch.length);
  }
  if (dropped > 0) report('audit events lost', { count: dropped });
  dropped = 0;
}

/** For people and not for the client: the message of a database's error may quote what somebody sent. */
function onError(error, { method, route }) {
  report('bug', { method, route, error: error?.name, code: error?.code, table: error?.table });
}

const routes = [
  get('/api/orders/{id}', needs(scope('read:orders')), readOrder),
  post('/api/orders', needs(scope('write:orders')), json(), addOrder),
];

await runService({ routes }, { onStart, onStop, onError, onResponse: record });
