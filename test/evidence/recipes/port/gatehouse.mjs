// The same API, ported. Settings: IDP_DOMAIN, IDP_AUDIENCE, CORS_ALLOWED_ORIGINS, ACCESS_LOG.
import { EventEmitter, on } from 'node:events';
import pg from 'pg';
import { authenticated, bytes, claimIncludes, del, fail, get, json, needs, noContent, open, patch, post, query, runService, scope } from 'gatehouse-http';

const changes = new EventEmitter().setMaxListeners(0);
let pool;

const mayRead = needs(scope('read:users'));
const isAdmin = needs(claimIncludes('roles', ['admin']));

const schemaOf = (validate) => ({ '~standard': { version: 1, validate } });
const Page = schemaOf(({ limit = '20' }) =>
  Number(limit) >= 1 && Number(limit) <= 100 ? { value: { limit: Number(limit) } } : { issues: [{ message: 'must be 1 to 100', path: ['limit'] }] });
const Profile = schemaOf((body) =>
  typeof body?.name === 'string' ? { value: { name: body.name } } : { issues: [{ message: 'must be a text', path: ['name'] }] });

// What was a middleware is a function that takes a handler.
const withUser = (handler) => async (request) => {
  const text = 'INSERT INTO users (sub) VALUES ($1) ON CONFLICT (sub) DO UPDATE SET sub = $1 RETURNING id, name, sub';
  const { rows } = await pool.query(text, [request.caller.subject]);
  return handler(request, rows[0]);
};

async function findUser(id) {
  const { rows } = await pool.query('SELECT id, name FROM users WHERE id = $1', [Number(id) || 0]);
  return rows[0] ?? fail(404, 'not_found', 'There is no such user');
}

async function saveAvatar({ headers, body }, user) {
  const form = new Response(body, { headers: { 'Content-Type': headers['content-type'] } });
  const avatar = (await form.formData().catch(() => new FormData())).get('avatar');
  if (!(avatar instanceof File)) throw fail(400, 'invalid_body', 'The form needs an avatar');
  await pool.query('UPDATE users SET avatar = $2 WHERE id = $1', [user.id, Buffer.from(await avatar.arrayBuffer())]);
}

async function readAvatar(request, user) {
  const { rows } = await pool.query('SELECT avatar FROM users WHERE id = $1', [user.id]);
  if (rows[0].avatar === null) throw fail(404, 'not_found', 'There is no avatar');
  return new Response(rows[0].avatar, { headers: { 'Content-Type': 'image/png' } });
}

async function exportUsers() {
  const { rows } = await pool.query('SELECT id, name FROM users ORDER BY id');
  const csv = ['id,name', ...rows.map(({ id, name }) => `${id},${name ?? ''}`)].join('\n');
  return new Response(csv, { headers: { 'Content-Type': 'text/csv' } });
}

async function* eventsUntil(signal) {
  for await (const [id] of on(changes, 'change', { signal })) yield Buffer.from(`data: ${id}\n\n`);
}

const form = bytes({ types: ['multipart/form-data'], limitBytes: 110_000 });

const routes = [
  get('/health', open, () => ({ status: 'ok' })),
  get('/users', mayRead, query(Page), async ({ query: { limit } }) =>
    (await pool.query('SELECT id, name FROM users ORDER BY id LIMIT $1', [limit])).rows),
  get('/users/me', authenticated, withUser((request, { id, name }) => ({ id, name }))),
  patch('/users/me', authenticated, json(Profile), withUser(async ({ body }, { id }) => {
    await pool.query('UPDATE users SET name = $2 WHERE id = $1', [id, body.name]);
    changes.emit('change', id);
    return findUser(id);
  })),
  post('/users/me/avatar', authenticated, form, withUser(saveAvatar)),
  get('/users/me/avatar', authenticated, withUser(readAvatar)),
  get('/users/export.csv', isAdmin, exportUsers),
  get('/users/events', mayRead, ({ signal }) =>
    new Response(eventsUntil(signal), { headers: { 'Content-Type': 'text/event-stream' } })),
  get('/users/{id}', mayRead, ({ parameters }) => findUser(parameters.id)),
  del('/users/{id}', isAdmin, async ({ parameters: { id } }) => {
    const { rowCount } = await pool.query('DELETE FROM users WHERE id = $1', [Number(id) || 0]);
    return rowCount === 0 ? fail(404, 'not_found', 'There is no such user') : noContent();
  }),
];

await runService({ routes }, {
  onStart: () => (pool = new pg.Pool({ connectionString: process.env.DATABASE_URL })).query('SELECT 1'),
  onStop: () => pool.end(),
  onError: (error, { method, route }) => console.error(method, route, error),
});
