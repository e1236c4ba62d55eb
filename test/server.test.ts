/* The process that operators run: exit codes, where it listens, its keys and its logs (contract §10). */
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
import { ask } from './support/client.ts';
import { DOWN, providerSettings, runProcess, type TestProcess } from './support/service.ts';

let provider: Provider;
before(async () => {
  provider = await startProvider();
});
after(() => provider.stop());

async function listen(context: TestContext): Promise<Server> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.after(() => server.close());
  return server;
}

const portOf = (server: Server) => (server.address() as AddressInfo).port;

describe('the process', { concurrency: 4, timeout: 60_000 }, () => {
  test('exits with 1 and every configuration problem on standard error, before it listens', async (t) => {
    const service = await runProcess(t, {
      environment: { IDP_DOMAIN: 'https://idp.test', IDP_AUDIENCE: '', PORT: 'x' },
    });
    assert.equal(await service.exited, 1);
    const lines = service.errors().split('\n');
    assert.deepEqual(
      lines.map((line) => /^configuration: (\w+)/.exec(line)?.[1]),
      ['IDP_DOMAIN', 'IDP_AUDIENCE', 'PORT', undefined],
    );
    assert.deepEqual([lines.at(-1), service.logs], ['', []]);
  });

  test('exits with 2 when its port is taken', async (t) => {
    const port = portOf(await listen(t));
    const service = await runProcess(t, { environment: { HOST: '127.0.0.1', PORT: String(port) } });
    assert.equal(await service.exited, 2);
    const [{ time, ...line } = {}, ...others] = service.logs;
    assert.deepEqual(
      [line, others],
      [{ level: 'error', message: 'address or port cannot be had', code: 'EADDRINUSE' }, []],
    );
  });

  test('exits with 2 when its address is not to be had', async (t) => {
    const service = await runProcess(t, { environment: { HOST: '192.0.2.1' } });
    assert.equal(await service.exited, 2);
    assert.equal(service.logs[0]?.code, 'EADDRNOTAVAIL');
  });

  for (const [level, count] of [
    ['silent', 0],
    ['error', 1],
  ] as const) {
    test(`logs ${count} lines about a port that is taken at LOG_LEVEL=${level}`, async (t) => {
      const port = portOf(await listen(t));
      const service = await runProcess(t, {
        environment: { HOST: '127.0.0.1', PORT: String(port), LOG_LEVEL: level },
      });
      assert.deepEqual([await service.exited, service.logs.length], [2, count]);
    });
  }

  test('says where it listens when PORT=0 picks the port', async (t) => {
    const service = await runProcess(t, { environment: { HOST: '127.0.0.1', PROFILE: 'a' } });
    const { time, application, ...line } = await service.logged('listening');
    assert.deepEqual(line, {
      level: 'info',
      message: 'listening',
      port: service.port,
      address: '127.0.0.1',
      profile: 'A',
    });
    assert.equal(application, 'gatehouse');
    assert.ok(service.port > 0);
    assert.equal((await service.ask('/healthz')).status, 200);
  });

  test('listens on the port that is set, on all addresses', async (t) => {
    const runOnFreePort = async (triesLeft: number): Promise<[number, TestProcess]> => {
      const other = createServer().listen(0);
      await once(other, 'listening');
      const port = portOf(other);
      await new Promise((resolve) => other.close(resolve));
      const service = await runProcess(t, { environment: { PORT: String(port) } });
      // Somebody else may have taken the port in between.
      return service.port === 0 && triesLeft > 0 && (await service.exited) === 2
        ? runOnFreePort(triesLeft - 1)
        : [port, service];
    };
    const [port, service] = await runOnFreePort(4);
    assert.equal(service.port, port);
    assert.match((await service.logged('listening')).address, /^(::|0\.0\.0\.0)$/);
    assert.equal((await service.ask('/healthz')).status, 200);
  });

  test('logs JSON lines with time, level and message, at the level that is set', async (t) => {
    const files = { 'application.yml': 'idp:\n  audience: https://api.test\nmetrics:\n  on: yes\n' };
    const [loud, usual] = await Promise.all(
      ['debug', 'info'].map((level) => runProcess(t, { environment: { LOG_LEVEL: level }, files })),
    );
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
    const messages = [
      'unknown setting ignored',
      'listening',
      'signing keys could not be fetched',
      'request refused',
      'shutting down',
      'stopped',
    ];
    // Under load the keys may be fetched for a second time.
    const messagesOf = ({ logs }: TestProcess) => [...new Set(logs.map(({ message }) => message))];
    assert.deepEqual(messagesOf(loud!), messages);
    assert.deepEqual(
      messagesOf(usual!),
      messages.filter((message) => message !== 'request refused'),
    );
  });

  test('runs with nothing but what was built', async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-'));
    t.after(() => rmSync(directory, { recursive: true }));
    cpSync(fileURLToPath(new URL('../dist', import.meta.url)), join(directory, 'dist'), { recursive: true });
    const surroundings = { cwd: directory, env: { ...DOWN, PORT: '0' } };
    const child = spawn(process.execPath, ['dist/server.js'], {
      ...surroundings,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    t.after(() => child.kill('SIGKILL'));
    const [line] = await once(createInterface(child.stdout), 'line');
    assert.equal((await ask(JSON.parse(line).port, '/api/public')).status, 200);
    child.kill('SIGINT');
    assert.deepEqual(await once(child, 'exit'), [0, null]);
  });

  test('listens while the provider is down, is not ready, and refuses nobody for it but callers with a token', async (t) => {
    const service = await runProcess(t);
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const token = `${part({ alg: 'RS256', kid: 'a' })}.${part({})}.AAAA`;
    await service.logged('signing keys could not be fetched');
    const asked = [
      ['/healthz'],
      ['/api/public'],
      ['/readyz'],
      ['/api/private'],
      ['/api/private', token],
    ] as const;
    const answers = await Promise.all(
      asked.map(([path, held]) => service.ask(path, held === undefined ? {} : { token: held })),
    );
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 503, 401, 503],
    );
  });

  test('fetches the keys at the start, and again by itself after a failure', async (t) => {
    const late = await startProvider();
    t.after(() => late.stop());
    await late.fault('all', 'refuse');
    const [usual, delayed] = await Promise.all(
      [provider, late].map((from) => runProcess(t, { environment: providerSettings(from) })),
    );
    await delayed!.logged('signing keys could not be fetched');
    await late.fault('all', undefined);
    for (const [from, service] of [
      [provider, usual!],
      [late, delayed!],
    ] as const) {
      await service.logged('signing keys loaded');
      assert.equal((await service.ask('/readyz')).status, 200);
      assert.equal((await service.ask('/api/private', { token: from.issue() })).status, 200);
    }
  });

  test('loses its logs, not the service, when standard output is gone', async (t) => {
    const service = await runProcess(t, { environment: { LOG_LEVEL: 'debug' } });
    service.child.stdout!.destroy();
    await once(service.child.stdout!, 'close');
    for (let count = 0; count < 5; count += 1) assert.equal((await service.ask('/nowhere')).status, 404);
    assert.equal((await service.ask('/healthz')).status, 200);
    service.child.kill('SIGTERM');
    assert.deepEqual([await service.exited, service.errors()], [0, '']);
  });
});
