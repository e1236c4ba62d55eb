/* A port: an API in Express, as it stands in many companies, and the same as a service, with one database each. Both
   get the same requests, and the clients of the one must not notice that they talk to the other. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { startProvider } from '../../idp/provider.ts';
import { freePort } from '../../support/free-port.ts';
import { startPostgres } from '../../support/postgres.ts';
import { startProgram, type Program } from './program.ts';

const PORT_FOLDER = new URL('port/', import.meta.url);

const TABLE = 'CREATE TABLE users (id serial PRIMARY KEY, sub text UNIQUE, name text, avatar bytea)';

interface Sent {
  readonly sub?: string;
  readonly claims?: object;
  readonly json?: unknown;
  readonly form?: () => FormData;
}

type Row = readonly [method: string, path: string, status: number, sent?: Sent];

const formOf = (name: string, length: number) => () => {
  const form = new FormData();
  form.set(name, new Blob([new Uint8Array(length).fill(7)]), 'me.png');
  return form;
};

const READ = { claims: { scope: 'read:users' } };
const ADMIN = { claims: { roles: ['admin'] } };

const ROWS: readonly Row[] = [
  ['GET', '/users/me', 200],
  ['GET', '/users/me', 200, { sub: 'eve' }],
  ['PATCH', '/users/me', 200, { json: { name: 'Ada' } }],
  ['PATCH', '/users/me', 422, { json: { name: 7 } }],
  ['GET', '/users', 403],
  ['GET', '/users', 200, READ],
  ['GET', '/users?limit=1', 200, READ],
  ['GET', '/users?limit=0', 400, READ],
  ['GET', '/users?limit=many', 400, READ],
  ['GET', '/users/1', 200, READ],
  ['GET', '/users/99', 404, READ],
  ['GET', '/users/x', 404, READ],
  ['GET', '/users/me/avatar', 404],
  ['POST', '/users/me/avatar', 204, { form: formOf('avatar', 99_000) }],
  ['POST', '/users/me/avatar', 413, { form: formOf('avatar', 200_000) }],
  ['GET', '/users/me/avatar', 200],
  ['GET', '/users/export.csv', 403],
  ['GET', '/users/export.csv', 200, ADMIN],
  ['DELETE', '/users/2', 403],
  ['DELETE', '/users/2', 204, ADMIN],
  ['DELETE', '/users/2', 404, ADMIN],
  ['GET', '/nothing', 404],
];

/** Express adds a charset to some. */
const essenceOf = ({ headers }: Response) => headers.get('content-type')?.split(';')[0];

async function outcomesOf({ origin, provider }: Program) {
  const bearer = ({ sub = 'ada', claims = {} }: Sent = {}) => `Bearer ${provider.issue({ sub, ...claims })}`;

  async function outcomeOf([method, path, , sent = {}]: Row) {
    const type = sent.json === undefined ? {} : { 'Content-Type': 'application/json' };
    const body = sent.json === undefined ? (sent.form?.() ?? null) : JSON.stringify(sent.json);
    const response = await fetch(origin + path, {
      method,
      headers: { Authorization: bearer(sent), ...type },
      body,
    });
    const text = Buffer.from(await response.arrayBuffer()).toString('latin1');
    const contentType = essenceOf(response);
    // In Express, a token that is valid and lacks a claim is 401.
    if (response.status === 401) return [403];
    // The texts of refusals are their own.
    return response.ok ? [response.status, contentType, hash('sha256', text)] : [response.status];
  }

  const outcomes: unknown[] = [];
  for (const row of ROWS) {
    const outcome = await outcomeOf(row);
    assert.equal(outcome[0], row[2], `${row.slice(0, 2).join(' ')}: ${outcome[0]}`);
    outcomes.push(outcome);
  }
  outcomes.push((await fetch(`${origin}/health`)).status, (await fetch(`${origin}/users/me`)).status);
  outcomes.push(await firstEvent(origin, bearer(READ), bearer()));
  return outcomes;
}

async function firstEvent(origin: string, reader: string, writer: string) {
  const response = await fetch(`${origin}/users/events`, { headers: { Authorization: reader } });
  const chunks = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const headers = { Authorization: writer, 'Content-Type': 'application/json' };
  await fetch(`${origin}/users/me`, { method: 'PATCH', headers, body: '{"name":"Ada"}' });
  const { value } = await chunks.read();
  await chunks.cancel();
  return [essenceOf(response), value];
}

export async function tryPort() {
  const provider = await startProvider();
  const outcomes: unknown[] = [];
  for (const name of ['express', 'gatehouse']) {
    const postgres = await startPostgres();
    postgres.ask(TABLE);
    const program = await startProgram(new URL(`${name}.mjs`, PORT_FOLDER), provider, {
      DATABASE_URL: postgres.url,
      PORT: String(await freePort()),
    });
    outcomes.push(await outcomesOf(program));
    program.child.kill('SIGTERM');
    assert.equal(await program.exited, 0, name);
    program.remove();
    await postgres.stop();
  }
  await provider.stop();
  assert.deepEqual(outcomes[1], outcomes[0]);
  console.log(
    `port: ${ROWS.length} requests, an event stream and the end are the same with Express and as a service`,
  );
}
