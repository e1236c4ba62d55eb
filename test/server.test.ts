/* The process that operators run: exit codes, signals, readiness and standard output (contract §10). */
import { strict as assert } from 'node:assert';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startProvider, type Provider } from './idp/provider.ts';
import { ask, openWire } from './support/client.ts';
import { providerSettings, startProcess, type OutOfProcess, type TestProcess } from './support/service.ts';

/** A provider at whose port nobody listens. */
const DOWN = { IDP_DOMAIN: '127.0.0.1:1', IDP_AUDIENCE: 'https://api.test' };
const HEALTH = 'GET /healthz HTTP/1.1\r\nHost: api.test\r\n\r\n';

let provider: Provider;
before(async () => { provider = await startProvider(); });
after(() => provider.stop());

async function run(context: TestContext, { environment, ...others }: OutOfProcess = {}): Promise<TestProcess> {
  const service = await startProcess({ environment: { ...DOWN, ...environment }, ...others });
  context.after(() => service.stop());
  return service;
}

async function listen(context: TestContext): Promise<Server> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.after(() => server.close());
  return server;
}

const portOf = (server: Server) => (server.address() as AddressInfo).port;
const reasons = ({ logs }: TestProcess) => logs.map(({ message, reason }) => [message, reason]);

describe('the process', { concurrency: 4, timeout: 60_000 }, () => {
  test('exits with 1 and every configuration problem on standard error, before it listens', async (t) => {
    const service = await run(t, { environment: { IDP_DOMAIN: 'https://idp.test', IDP_AUDIENCE: '', PORT: 'x' } });
    assert.equal(await service.exited, 1);
    const lines = service.errors().split('\n');
    assert.deepEqual(lines.map((line) => /^configuration: (\w+)/.exec(line)?.[1]), ['IDP_DOMAIN', 'IDP_AUDIENCE', 'PORT', undefined]);
    assert.deepEqual([lines.at(-1), service.logs], ['', []]);
  });

  test('exits with 2 when its port is taken', async (t) => {
    const port = portOf(await listen(t));
    const service = await run(t, { environment: { HOST: '127.0.0.1', PORT: String(port) } });
    assert.equal(await service.exited, 2);
    const [{ time, ...line } = {}, ...others] = service.logs;
    assert.deepEqual([line, others], [{ level: 'error', message: 'address or port cannot be had', code: 'EADDRINUSE' }, []]);
  });

  test('exits with 2 when its address is not to be had', async (t) => {
    const service = await run(t, { environment: { HOST: '192.0.2.1' } });
    assert.equal(await service.exited, 2);
    assert.equal(service.logs[0]?.code, 'EADDRNOTAVAIL');
  });

  for (const [level, count] of [['silent', 0], ['error', 1]] as const) {
    test(`logs ${count} lines about a port that is taken at LOG_LEVEL=${level}`, async (t) => {
      const port = portOf(await listen(t));
      const service = await run(t, { environment: { HOST: '127.0.0.1', PORT: String(port), LOG_LEVEL: level } });
      assert.deepEqual([await service.exited, service.logs.length], [2, count]);
    });
  }

  test('says where it listens when PORT=0 picks the port', async (t) => {
    const service = await run(t, { environment: { HOST: '127.0.0.1', PROFILE: 'a' } });
    const { time, application, ...line } = await service.logged('listening');
    assert.deepEqual(line, { level: 'info', message: 'listening', port: service.port, address: '127.0.0.1', profile: 'A' });
    assert.equal(application, 'gatehouse');
    assert.ok(service.port > 0);
    assert.equal((await service.ask('/healthz')).status, 200);
  });

  test('listens on the port that is set, on all addresses', async (t) => {
    const other = createServer().listen(0);
    await once(other, 'listening');
    const port = portOf(other);
    await new Promise((resolve) => other.close(resolve));
    const service = await run(t, { environment: { PORT: String(port) } });
    assert.equal(service.port, port);
    assert.match((await service.logged('listening')).address, /^(::|0\.0\.0\.0)$/);
    assert.equal((await service.ask('/healthz')).status, 200);
  });

  test('logs JSON lines with time, level and message, at the level that is set', async (t) => {
    const files = { 'application.yml': 'idp:\n  audience: https://api.test\nmetrics:\n  on: yes\n' };
    const [loud, usual] = await Promise.all(['debug', 'info'].map((level) => run(t, { environment: { LOG_LEVEL: level }, files })));
    for (const service of [loud!, usual!]) {
      await service.logged('signing keys could not be fetched');
      assert.equal((await service.ask('/nowhere')).status, 404);
      service.child.kill('SIGTERM');
      await service.exited;
      for (const line of service.logs) {
        assert.deepEqual(Object.keys(line).slice(0, 3), ['time', 'level', 'message']);
        assert.equal(new Date(line.time).toISOString(), line.time);
        assert.ok(Math.abs(Date.parse(line.time) - Date.now()) < 3_600_000);
      }
      assert.deepEqual(service.logs[0]?.setting, 'metrics.on');
    }
    const messages = ['unknown setting ignored', 'listening', 'signing keys could not be fetched', 'request refused', 'shutting down', 'stopped'];
    assert.deepEqual(loud!.logs.map(({ message }) => message), messages);
    assert.deepEqual(usual!.logs.map(({ message }) => message), messages.filter((message) => message !== 'request refused'));
  });

  test('runs with nothing but what was built', async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-'));
    t.after(() => rmSync(directory, { recursive: true }));
    for (const name of ['dist', 'package.json']) {
      cpSync(fileURLToPath(new URL(`../${name}`, import.meta.url)), join(directory, name), { recursive: true });
    }
    const child = spawn(process.execPath, ['dist/server.js'], { cwd: directory, env: { ...DOWN, PORT: '0' }, stdio: ['ignore', 'pipe', 'inherit'] });
    t.after(() => child.kill('SIGKILL'));
    const [line] = await once(createInterface(child.stdout), 'line');
    assert.equal((await ask(JSON.parse(line).port, '/api/public')).status, 200);
    child.kill('SIGINT');
    assert.deepEqual(await once(child, 'exit'), [0, null]);
  });

  test('listens while the provider is down, is not ready, and refuses nobody for it but callers with a token', async (t) => {
    const service = await run(t);
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const token = `${part({ alg: 'RS256', kid: 'a' })}.${part({})}.AAAA`;
    await service.logged('signing keys could not be fetched');
    const asked = [['/healthz'], ['/api/public'], ['/readyz'], ['/api/private'], ['/api/private', token]] as const;
    const statuses = await Promise.all(asked.map(async ([path, held]) => (await service.ask(path, held === undefined ? {} : { token: held })).status));
    assert.deepEqual(statuses, [200, 200, 503, 401, 503]);
  });

  test('fetches the keys at the start, and again by itself after a failure', async (t) => {
    const late = await startProvider();
    t.after(() => late.stop());
    await late.fault('all', 'refuse');
    const [usual, delayed] = await Promise.all([provider, late].map((from) => run(t, { environment: providerSettings(from) })));
    await delayed!.logged('signing keys could not be fetched');
    await late.fault('all', undefined);
    for (const [from, service] of [[provider, usual!], [late, delayed!]] as const) {
      await service.logged('signing keys loaded');
      assert.equal((await service.ask('/readyz')).status, 200);
      assert.equal((await service.ask('/api/private', { token: from.issue() })).status, 200);
    }
  });

  test('loses its logs, not the service, when standard output is gone', async (t) => {
    const service = await run(t, { environment: { LOG_LEVEL: 'debug' } });
    service.child.stdout!.destroy();
    await once(service.child.stdout!, 'close');
    for (let count = 0; count < 5; count += 1) assert.equal((await service.ask('/nowhere')).status, 404);
    assert.equal((await service.ask('/healthz')).status, 200);
    service.child.kill('SIGTERM');
    assert.deepEqual([await service.exited, service.errors()], [0, '']);
  });

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`exits with 0 after ${signal}, once idle and unused connections are closed`, async (t) => {
      const service = await run(t);
      const [idle, unused, asking] = await Promise.all([openWire(service.port), openWire(service.port), openWire(service.port)]);
      for (const wire of [idle, asking]) {
        wire.send(HEALTH);
        await wire.until((text) => text.endsWith('}'));
      }
      service.child.kill(signal);
      await service.logged('shutting down');
      asking.send(HEALTH);
      assert.match(await asking.untilClosed(), /Connection: keep-alive[^]*HTTP\/1\.1 200 OK[^]*Connection: close/);
      assert.equal((await idle.untilClosed()).match(/HTTP/g)?.length, 1);
      assert.equal(await unused.untilClosed(), '');
      assert.equal(await service.exited, 0);
      assert.deepEqual(reasons(service).slice(-2), [['shutting down', signal], ['stopped', 'drained']]);
    });
  }

  test('is not ready but serves on for SHUTDOWN_DELAY_SECONDS', async (t) => {
    const service = await run(t, { environment: { ...providerSettings(provider), SHUTDOWN_DELAY_SECONDS: '60' } });
    await service.logged('signing keys loaded');
    assert.equal((await service.ask('/readyz')).status, 200);
    service.child.kill('SIGTERM');
    await service.logged('shutting down');
    const { status, headers, body } = await service.ask('/readyz');
    assert.deepEqual([status, body], [503, { error: 'temporarily_unavailable', message: 'The service is shutting down' }]);
    assert.equal(headers['retry-after'], '1');
    for (let count = 0; count < 30; count += 1) {
      assert.equal((await service.ask('/api/private', { token: provider.issue() })).status, 200);
      assert.equal((await service.ask('/healthz')).headers.connection, 'close');
    }
    service.child.kill('SIGTERM');
    assert.equal(await service.exited, 1);
  });

  test('exits with 0 when SHUTDOWN_DELAY_SECONDS have passed', async (t) => {
    const service = await run(t, { environment: { SHUTDOWN_DELAY_SECONDS: '1' } });
    service.child.kill('SIGTERM');
    assert.equal(await service.exited, 0);
  });

  for (const [first, second] of [['SIGTERM', 'SIGTERM'], ['SIGINT', 'SIGINT'], ['SIGTERM', 'SIGINT'], ['SIGINT', 'SIGTERM']] as const) {
    test(`exits with 1 at once when ${second} follows ${first}, whatever is under way`, async (t) => {
      const service = await run(t);
      const wire = await openWire(service.port);
      wire.send('GET /healthz HTTP/1.1\r\n');
      service.child.kill(first);
      await service.logged('shutting down');
      service.child.kill(second);
      assert.equal(await service.exited, 1);
      assert.deepEqual(reasons(service).slice(-2), [['shutting down', first], ['stopped', 'second-signal']]);
      assert.equal(await wire.untilClosed(), '');
    });
  }
});
