// An API as it stands in many companies: Express 5, a token check, multer, a pool, and an event stream.
import { EventEmitter } from 'node:events';
import cors from 'cors';
import express from 'express';
import { auth, claimIncludes, requiredScopes } from 'express-oauth2-jwt-bearer';
import multer from 'multer';
import pg from 'pg';

const { AUDIENCE, DATABASE_URL, HOST, ISSUER, JWKS_URI, PORT } = process.env;
const pool = new pg.Pool({ connectionString: DATABASE_URL });
const changes = new EventEmitter();
const upload = multer({ limits: { fileSize: 100_000 } });

class HttpError extends Error {
  constructor(status, code, message) {
    super(message);
    Object.assign(this, { status, code });
  }
}

const app = express();
app.use(cors({ origin: 'https://app.example.com' }));
app.use((request, response, next) => {
  response.on('finish', () => console.log(request.method, request.originalUrl, response.statusCode));
  next();
});
app.get('/health', (request, response) => response.json({ status: 'ok' }));
app.use(auth({ issuer: ISSUER, audience: AUDIENCE, jwksUri: JWKS_URI, tokenSigningAlg: 'RS256' }));
app.use(express.json());
// Every handler below has the user of the token.
app.use(async (request, response, next) => {
  const { sub } = request.auth.payload;
  const text = 'INSERT INTO users (sub) VALUES ($1) ON CONFLICT (sub) DO UPDATE SET sub = $1 RETURNING id, name, sub';
  request.user = (await pool.query(text, [sub])).rows[0];
  next();
});

async function findUser(id) {
  const { rows } = await pool.query('SELECT id, name FROM users WHERE id = $1', [Number(id) || 0]);
  if (rows.length === 0) throw new HttpError(404, 'not_found', 'There is no such user');
  return rows[0];
}

const isAdmin = claimIncludes('roles', 'admin');

app.get('/users', requiredScopes('read:users'), async ({ query }, response) => {
  const limit = Number(query.limit ?? 20);
  if (!(limit >= 1 && limit <= 100)) throw new HttpError(400, 'invalid_query', 'limit must be 1 to 100');
  response.json((await pool.query('SELECT id, name FROM users ORDER BY id LIMIT $1', [limit])).rows);
});
app.get('/users/me', async ({ user }, response) => response.json({ id: user.id, name: user.name }));
app.patch('/users/me', async ({ user, body }, response) => {
  if (typeof body?.name !== 'string') throw new HttpError(422, 'unprocessable_content', 'name must be a text');
  await pool.query('UPDATE users SET name = $2 WHERE id = $1', [user.id, body.name]);
  changes.emit('change', user.id);
  response.json(await findUser(user.id));
});
app.post('/users/me/avatar', upload.single('avatar'), async ({ user, file }, response) => {
  if (file === undefined) throw new HttpError(400, 'invalid_body', 'The form needs an avatar');
  await pool.query('UPDATE users SET avatar = $2 WHERE id = $1', [user.id, file.buffer]);
  response.sendStatus(204);
});
app.get('/users/me/avatar', async ({ user }, response) => {
  const { rows } = await pool.query('SELECT avatar FROM users WHERE id = $1', [user.id]);
  if (rows[0].avatar === null) throw new HttpError(404, 'not_found', 'There is no avatar');
  response.type('image/png').send(rows[0].avatar);
});
app.get('/users/export.csv', isAdmin, async (request, response) => {
  const { rows } = await pool.query('SELECT id, name FROM users ORDER BY id');
  response.type('text/csv').send(['id,name', ...rows.map(({ id, name }) => `${id},${name ?? ''}`)].join('\n'));
});
app.get('/users/events', requiredScopes('read:users'), (request, response) => {
  const send = (id) => response.write(`data: ${id}\n\n`);
  changes.on('change', send);
  response.on('close', () => changes.off('change', send));
  response.set('Content-Type', 'text/event-stream').flushHeaders();
});
app.get('/users/:id', requiredScopes('read:users'), async ({ params }, response) => {
  response.json(await findUser(params.id));
});
app.delete('/users/:id', isAdmin, async ({ params }, response) => {
  await findUser(params.id);
  await pool.query('DELETE FROM users WHERE id = $1', [params.id]);
  response.sendStatus(204);
});

app.use((error, request, response, next) => {
  if (response.headersSent) return next(error);
  const known = error instanceof multer.MulterError ? { ...error, status: 413 } : error;
  const { status = 500, code = 'server_error', headers = {} } = known;
  if (status === 500) console.error(error);
  response.status(status).set(headers).json({ error: code, message: status === 500 ? 'Internal error' : error.message });
});

app.listen(PORT, HOST);
process.once('SIGTERM', () => pool.end().then(() => process.exit(0)));
