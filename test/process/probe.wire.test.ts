/* `--probe`: asks the service that the same settings describe whether it is ready. */
import { strict as assert } from 'node:assert';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { after, before, describe, test, type TestContext } from 'node:test';
import { startProvider, type Provider } from '../idp/provider.ts';
import { startRawServer } from '../idp/raw-server.ts';
import { DOWN, providerSettings, runProcess } from '../support/process.ts';
import type { Environment } from '../support/settings.ts';
import { runCommand } from './commands.ts';

let provider: Provider;

before(async () => {
  provider = await startProvider();
});

after(() => provider.stop());

/** A service with keys, unless its environment prevents it. */
async function startReady(t: TestContext, environment: Environment = {}) {
  const service = await runProcess(t, { environment: { ...providerSettings(provider), ...environment } });
  await service.logged('signing keys loaded');
  return service;
}

const probe = (environment: Environment) => runCommand(['--probe'], { ...DOWN, ...environment });

/** A server that sends, byte for byte, what a test wants, in place of the service. */
async function startLiar(t: TestContext, response: string | undefined): Promise<string> {
  const server = await startRawServer((socket) => {
    socket.once('data', () => void (response === undefined || socket.write(response)));
  });
  t.after(() => server.stop());
  return String(server.port);
}

/** Has the process tell, on standard error, the time of each timer. */
const TIMERS = `const { setTimeout } = globalThis;
globalThis.setTimeout = (act, millis, ...more) => {
  console.error(millis);
  return setTimeout(act, millis, ...more);
};`;

const telling: Environment = {
  NODE_OPTIONS: `--import=data:text/javascript;base64,${Buffer.from(TIMERS).toString('base64')}`,
};

describe('--probe', { concurrency: 4 }, () => {
  for (const host of [undefined, '127.0.0.1', 'localhost', '::1', '::', '0.0.0.0']) {
    test(`exits with 0 when the service that listens on ${host ?? 'all addresses'} is ready`, async (t) => {
      const HOST: Environment = host === undefined ? {} : { HOST: host };
      const service = await startReady(t, HOST);
      const { code, output, errors } = await probe({ ...HOST, PORT: String(service.port) });
      const shown = (host ?? '127.0.0.1').replace(/.*:.*/, '[$&]');
      assert.deepEqual([code, output, errors], [0, `http://${shown}:${service.port}/readyz: 200\n`, []]);
    });
  }

  test('finds the service through the settings files that both read', async (t) => {
    const service = await startReady(t);
    const files = { 'application.yml': `server:\n  port: ${service.port}\n` };
    assert.equal((await runCommand(['--probe'], DOWN, files)).code, 0);
  });

  test('exits with 1 when the service has no keys', async (t) => {
    const service = await runProcess(t);
    const { code, output } = await probe({ PORT: String(service.port) });
    const outcome = '503, it has no usable keys, or is stopping; see its log';
    assert.deepEqual([code, output], [1, `http://127.0.0.1:${service.port}/readyz: ${outcome}\n`]);
  });

  test('exits with 1 while the service is shutting down', async (t) => {
    const service = await startReady(t, { SHUTDOWN_DELAY_SECONDS: '60' });
    service.child.kill('SIGTERM');
    await service.logged('shutting down');
    assert.equal((await probe({ PORT: String(service.port) })).code, 1);
  });

  for (const [status, code, ...parts] of [
    ['200 OK', 0, '{"status"', ':"ready"}'],
    ['503 Service Unavailable', 1, `{"message":"${'x'.repeat(80)}",`, '"error":"temporarily_unavailable"}'],
  ] as const) {
    test(`understands a ${status} whose body arrives in parts`, async (t) => {
      const chunks = [...parts, ''].map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join('');
      const head = `HTTP/1.1 ${status}\r\nTransfer-Encoding: chunked\r\n\r\n`;
      const { code: ended, output } = await probe({ PORT: await startLiar(t, head + chunks) });
      assert.equal(ended, code);
      assert.match(output, code === 0 ? /: 200\n$/ : /: 503, it has no usable keys, /);
    });
  }

  test('exits with 1 when nothing listens at the address of the service', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await new Promise((closed) => server.close(closed));
    for (const HOST of ['127.0.0.1', 'localhost']) {
      const { code, output } = await probe({ HOST, PORT: String(port) });
      const outcome = 'no response (ECONNREFUSED); check that the service runs, and PORT and HOST';
      assert.deepEqual([code, output], [1, `http://${HOST}:${port}/readyz: ${outcome}\n`]);
    }
  });

  for (const [condition, response] of [
    ['says nothing', undefined],
    ['never ends its head', 'HTTP/1.1 200 OK\r\na: b\r\n'],
    ['only says to wait', 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['switches protocols', 'HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'],
  ] as const) {
    test(`exits with 1 after five seconds when the server at the address of the service ${condition}`, async (t) => {
      const PORT = await startLiar(t, response);
      const began = performance.now();
      const { code, output, errors } = await probe({ ...telling, HOST: 'localhost', PORT });
      assert.deepEqual([code, output], [1, `http://localhost:${PORT}/readyz: no response in time\n`]);
      assert.deepEqual(errors, ['5000']);
      assert.ok(performance.now() - began < 30_000);
    });
  }

  const OTHER = 'but not from gatehouse; check which process listens there, and PORT and HOST';
  const NONE = 'no response (HPE_INVALID_CONSTANT); check that the service runs, and PORT and HOST';

  for (const [condition, response, outcome] of [
    ['answers 204', 'HTTP/1.1 204 X\r\n\r\n', `204, ${OTHER}`],
    ['redirects', 'HTTP/1.1 302 X\r\nLocation: /healthz\r\nContent-Length: 0\r\n\r\n', `302, ${OTHER}`],
    ['does not speak HTTP', 'SSH-2.0-x\r\n', NONE],
    ['has no such path', 'HTTP/1.1 404 X\r\nContent-Length: 2\r\n\r\nno', `404, ${OTHER}`],
    ['answers 503', 'HTTP/1.1 503 X\r\nContent-Length: 2\r\n\r\nno', `503, ${OTHER}`],
    ['answers 200 with a page of its own', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', `200, ${OTHER}`],
    [
      'answers 200 with more than gatehouse says',
      `HTTP/1.1 200 OK\r\n\r\n{"status":"ready"}${' '.repeat(2_000)}`,
      `200, ${OTHER}`,
    ],
    [
      'says with 500 what gatehouse says with 503',
      'HTTP/1.1 500 X\r\nContent-Length: 35\r\n\r\n{"error":"temporarily_unavailable"}',
      `500, ${OTHER}`,
    ],
    [
      'says that it is ready with 404',
      'HTTP/1.1 404 X\r\nContent-Length: 18\r\n\r\n{"status":"ready"}',
      `404, ${OTHER}`,
    ],
  ] as const) {
    test(`exits with 1 and says what to check when the server at the address of the service ${condition}`, async (t) => {
      const PORT = await startLiar(t, response);
      const { code, output } = await probe({ HOST: 'localhost', PORT });
      assert.deepEqual([code, output], [1, `http://localhost:${PORT}/readyz: ${outcome}\n`]);
    });
  }

  test('ignores a proxy that the environment names', async (t) => {
    const service = await startReady(t);
    const nowhere = 'http://127.0.0.1:9';
    const proxied = { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: nowhere, http_proxy: nowhere, IDP_PROXY: nowhere };
    assert.equal((await probe({ ...proxied, PORT: String(service.port) })).code, 0);
  });

  test('refuses PORT=0, which does not name a port', async () => {
    const { code, output, errors } = await probe({ PORT: '0' });
    assert.deepEqual([code, output], [1, '']);
    assert.deepEqual(errors, [
      'configuration: PORT or server.port: must not be 0 for --probe; set one, or use --check',
    ]);
  });

  test('reports PORT=0 together with every other problem', async () => {
    const { code, errors } = await runCommand(['--probe'], { PORT: '0' });
    assert.equal(code, 1);
    assert.deepEqual(
      errors.map((line) => /^configuration: (\w+)/.exec(line)?.[1]),
      ['PORT', 'IDP_DOMAIN', 'IDP_AUDIENCE'],
    );
  });

  test('reports every configuration problem as a start would', async () => {
    const { code, errors } = await runCommand(['--probe'], { PORT: 'x' });
    assert.equal(code, 1);
    assert.deepEqual(
      errors.map((line) => /^configuration: (\w+)/.exec(line)?.[1]),
      ['IDP_DOMAIN', 'IDP_AUDIENCE', 'PORT'],
    );
  });
});
