/* The recipe with PostgreSQL, and what becomes of it when its database is not there: before the start, while it
   runs, and at the end. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { pathToFileURL } from 'node:url';
import { startProvider, type Provider } from '../../idp/provider.ts';
import { fileOf } from '../../package/recipes/run-recipe.ts';
import { startPostgres, type Postgres } from '../../support/postgres.ts';
import { providerSettings, startProcess, type TestProcess } from '../../support/process.ts';
import { until } from '../../support/watch.ts';
import { makeProject } from './program.ts';

const PATIENCE_SECONDS = 30;

export class PostgresTrial {
  readonly #project = makeProject(pathToFileURL(fileOf('postgres')));
  readonly #provider: Provider;
  readonly #postgres: Postgres;

  constructor(provider: Provider, postgres: Postgres) {
    this.#provider = provider;
    this.#postgres = postgres;
  }

  start(): Promise<TestProcess> {
    return startProcess({
      program: [process.execPath, this.#project.file],
      environment: {
        ...providerSettings(this.#provider),
        HOST: '127.0.0.1',
        DATABASE_URL: this.#postgres.url,
      },
    });
  }

  remove() {
    rmSync(this.#project.directory, { recursive: true });
  }

  fields(sub = 'ada', scope = 'read:orders write:orders') {
    return {
      Authorization: `Bearer ${this.#provider.issue({ sub, scope })}`,
      'Content-Type': 'application/json',
    };
  }

  async add({ port }: TestProcess, item: unknown) {
    const url = `http://127.0.0.1:${port}/api/orders`;
    const response = await fetch(url, {
      method: 'POST',
      headers: this.fields(),
      body: JSON.stringify({ item }),
    });
    return {
      status: response.status,
      text: await response.text(),
      path: response.headers.get('location') ?? '',
    };
  }

  async read({ port }: TestProcess, path: string, sub = 'ada', scope = 'read:orders') {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: this.fields(sub, scope) });
    return { status: response.status, text: await response.text() };
  }
}

type Part = (trial: PostgresTrial, postgres: Postgres) => Promise<string>;

const requests: Part = async (trial, postgres) => {
  const service = await trial.start();
  const { status, path } = await trial.add(service, "tea'; DROP TABLE orders; --");
  assert.equal(status, 201);
  assert.equal(JSON.parse((await trial.read(service, path)).text).item, "tea'; DROP TABLE orders; --");
  assert.equal((await trial.read(service, path, 'eve')).status, 404);
  for (const id of ['0', '1%20OR%201=1', "1'", '9'.repeat(30), '%00']) {
    assert.equal((await trial.read(service, `/api/orders/${id}`)).status, 404, id);
  }
  for (const item of [7, null, 'x'.repeat(101), 'a\0b']) {
    assert.equal((await trial.add(service, item)).status, 422);
  }
  assert.equal((await trial.add(service, "tea'; DROP TABLE orders; --")).status, 409);
  assert.equal((await trial.read(service, path, 'ada', 'write:orders')).status, 403);

  service.child.kill('SIGTERM');
  assert.equal(await service.exited, 0, service.errors());
  const audit = postgres.ask('SELECT method, path, status, reason, caller FROM audit ORDER BY at');
  assert.ok(audit.includes(`POST|/api/orders|201||ada`), audit.join('\n'));
  assert.ok(audit.includes(`GET|${path}|404|handler|eve`), audit.join('\n'));
  assert.ok(audit.includes(`GET|${path}|403|scope-missing|ada`), audit.join('\n'));
  assert.equal(audit.length, 14);
  await service.stop();
  return 'orders are stored, private, and in the audit log with every refusal; the last of them before the end';
};

const bugs: Part = async (trial, postgres) => {
  const service = await trial.start();
  postgres.ask('ALTER TABLE orders RENAME TO hidden');
  const { status, text } = await trial.add(service, 'milk');
  assert.equal(status, 500);
  assert.doesNotMatch(text, /orders|relation/);
  const { route, code } = await service.logged('bug');
  assert.deepEqual([route, code], ['/api/orders', '42P01']);
  postgres.ask('ALTER TABLE hidden RENAME TO orders');
  assert.equal((await trial.add(service, 'milk')).status, 201);
  await service.stop();
  return 'a bug is a 500 that says nothing, and onError has its code';
};

/** Holds a lock until it is ended. */
function lock({ url }: Postgres) {
  const statements = 'BEGIN; LOCK TABLE orders; SELECT pg_sleep(60)';
  return spawn('psql', [url, '-X', '-q', '-c', statements], { stdio: 'ignore' });
}

const locks = (postgres: Postgres) =>
  postgres.ask(
    "SELECT 1 FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted AND relation = 'orders'::regclass",
  ).length;

const release = (postgres: Postgres) =>
  postgres.ask(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()",
  );

const slow: Part = async (trial, postgres) => {
  const service = await trial.start();
  const released = once(lock(postgres), 'exit');
  await until('the table is locked', () => locks(postgres) > 0, PATIENCE_SECONDS);
  const { status } = await trial.add(service, 'oats');
  assert.equal(status, 503);
  assert.equal((await service.logged('database away')).code, '57014');

  // A request that waits when the signal comes is served.
  const waiting = trial.add(service, 'rye');
  await until(
    'it waits',
    () => postgres.ask("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'").length > 0,
    PATIENCE_SECONDS,
  );
  service.child.kill('SIGTERM');
  await service.logged('shutting down');
  release(postgres);
  assert.equal((await waiting).status, 201);
  assert.equal(await service.exited, 0);
  const [left] = postgres.ask(
    "SELECT count(*) FROM pg_stat_activity WHERE usename = 'gatehouse' AND pid <> pg_backend_pid() AND backend_type = 'client backend'",
  );
  assert.equal(left, '0');
  await released;
  await service.stop();
  return 'a statement that waits for long is a 503; a drain serves what waits, and closes every connection';
};

/** Accepts connections and says nothing. */
async function silentDatabase(url: string) {
  const server = createServer().listen(Number(new URL(url).port), '127.0.0.1');
  const sockets = new Set<{ destroy(): void }>();
  server.on('connection', (socket) => void sockets.add(socket.on('error', () => {})));
  await once(server, 'listening');
  return async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  };
}

const outage: Part = async (trial, postgres) => {
  const service = await trial.start();
  assert.equal((await trial.add(service, 'before')).status, 201);
  await postgres.halt();
  assert.equal((await trial.add(service, 'during')).status, 503);
  const stopSilent = await silentDatabase(postgres.url);
  assert.equal((await trial.add(service, 'silent')).status, 503);
  await stopSilent();
  await service.logged('audit log failed');
  await postgres.start();
  await until(
    'it is served again',
    async () => (await trial.add(service, 'after')).status !== 503,
    PATIENCE_SECONDS,
  );
  const lost = "SELECT 1 FROM audit WHERE status = 503 AND at > now() - interval '1 minute'";
  await until('the audit log has the outage', () => postgres.ask(lost).length >= 2, PATIENCE_SECONDS);
  await postgres.halt();
  assert.equal((await trial.add(service, 'at the end')).status, 503);
  service.child.kill('SIGTERM');
  assert.equal(await service.exited, 1);
  assert.ok(service.logs.some(({ message }) => message === 'stop failed'));
  await service.stop();
  return 'while the database is away: 503, also when it is silent; then 200 without a restart, and an audit log with the outage';
};

const absent: Part = async (trial, postgres) => {
  const service = await trial.start();
  assert.equal(await service.exited, 1);
  const messages = service.logs.map(({ message }) => message);
  assert.ok(messages.includes('start failed') && !messages.includes('listening'), messages.join());
  await service.stop();
  await postgres.start();
  return 'without the database it does not start: exit code 1, and nothing listens';
};

export async function tryPostgres() {
  const provider = await startProvider();
  const postgres = await startPostgres();
  const trial = new PostgresTrial(provider, postgres);
  // The last but one leaves the database ended.
  for (const part of [requests, bugs, slow, outage, absent]) {
    console.log(`postgres: ${await part(trial, postgres)}`);
  }
  trial.remove();
  await postgres.stop();
  await provider.stop();
}
