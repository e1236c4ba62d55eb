/* The access log: one line for each request with its fields, its trace, and nothing else. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { after, before, describe, test } from 'node:test';
import { open } from '../../../src/gate/rules/access.ts';
import { get } from '../../../src/service/routes/route.ts';
import { startProvider, type Provider } from '../../idp/provider.ts';
import { exchange, openWire, type Ask } from '../../support/client.ts';
import { CONNECT, GARBAGE, HELD, openListener } from '../../support/listener.ts';
import { startService, type TestService } from '../../support/service.ts';
import { startRoutes } from '../../support/routes.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';
const traceparent = `00-${TRACE}-${PARENT}-01`;

type Line = Readonly<Record<string, unknown>>;

/** Lines without unpredictable fields. */
const told = (logs: readonly Line[], message = 'request') =>
  logs
    .filter((line) => line.message === message)
    .map(({ time, level, message: _, durationMillis, ...line }) => {
      if (message === 'request') assert.ok(Number(durationMillis) >= 0 && level === 'info');
      return line;
    });

describe('the access log', { timeout: 30_000 }, () => {
  let provider: Provider;
  let service: TestService;

  before(async () => {
    provider = await startProvider();
    service = await startService({ provider, environment: { ACCESS_LOG: 'true' } });
  });

  after(async () => {
    await service.stop();
    await provider.stop();
  });

  async function linesOf(path: string, request: Ask = {}, message?: string) {
    const before = service.logs.length;
    await service.ask(path, request);
    return told(service.logs.slice(before), message);
  }

  test('has a line for a served request, with the issuer and the key of its token', async () => {
    const token = provider.issue({ scope: 'read:messages' });
    assert.deepEqual(await linesOf('/api/messages?secret=1', { token, headers: { traceparent } }), [
      {
        method: 'GET',
        route: '/api/messages',
        status: 200,
        issuer: 'idp',
        kid: JSON.parse(String(Buffer.from(token.split('.')[0] ?? '', 'base64url'))).kid,
        traceId: TRACE,
        parentId: PARENT,
      },
    ]);
    assert.deepEqual(await linesOf('/api/public'), [{ method: 'GET', route: '/api/public', status: 200 }]);
  });

  test('has a line for a refused request, with the reason', async () => {
    assert.deepEqual(await linesOf('/api/private', { method: 'HEAD' }), [
      { method: 'HEAD', route: '/api/private', status: 401, reason: 'no-credentials' },
    ]);
    assert.deepEqual(await linesOf('/nothing', { method: 'PURGE' }), [
      { method: '_OTHER', route: null, status: 404, reason: 'not_found' },
    ]);
  });

  test('has a line for a probe only when it fails', async () => {
    assert.deepEqual([await linesOf('/healthz'), await linesOf('/readyz')], [[], []]);
    service.beginStopping();
    assert.deepEqual(await linesOf('/readyz'), [
      { method: 'GET', route: '/readyz', status: 503, reason: 'shutting-down' },
    ]);
  });

  test('shows the trace of a refused request [W3C Trace Context §3.2.2]', async () => {
    const headers = { traceparent };
    const [line] = await linesOf('/api/private', { headers }, 'request refused');
    assert.deepEqual([line?.reason, line?.traceId], ['no-credentials', TRACE]);
  });

  for (const [what, value] of [
    ['two traceparent fields', [traceparent, traceparent]],
    ['capital letters', traceparent.toUpperCase()],
    ['version ff', `ff${traceparent.slice(2)}`],
    ['a trace of zeros', `00-${'0'.repeat(32)}-${PARENT}-01`],
  ] as const) {
    test(`shows no trace for ${what} [W3C Trace Context §3.2.2]`, async () => {
      const [line = {}] = await linesOf('/api/public', { headers: { traceparent: value as string } });
      assert.deepEqual(Object.keys(line), ['method', 'route', 'status']);
    });
  }

  test('holds nothing that names a person, and no token', async () => {
    const token = provider.issue({ sub: 'a-person', scope: 'x' });
    const before = service.logs.length;
    await service.ask('/api/org/a-path?a-query', {
      token,
      headers: { 'User-Agent': 'an-agent', Cookie: 'a-cookie' },
    });
    await service.ask('/api/private', { token: `${token.slice(0, -3)}abc` });
    const text = JSON.stringify(service.logs.slice(before));
    const secrets = [token.split('.')[1], token.split('.')[2]?.slice(0, 20), 'a-person', 'a-path', 'a-query'];
    for (const secret of [...secrets, 'an-agent', 'a-cookie', '127.0.0.1']) {
      assert.ok(!text.includes(String(secret)), `${secret} in ${text}`);
    }
  });
});

test('has a line without method and route for bytes that are not a request', async (t) => {
  const listener = await openListener(t, { environment: { ACCESS_LOG: 'true' } });
  listener.clock.advance(5_000);
  await exchange(listener.port, GARBAGE);
  await exchange(listener.port, `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`);
  await exchange(listener.port, CONNECT);
  assert.deepEqual(told(listener.logs), [
    { method: null, route: null, status: 400, reason: 'malformed-http' },
    { method: null, route: null, status: 431, reason: 'header_fields_too_large' },
    { method: 'CONNECT', route: null, status: 400, reason: 'target-refused' },
  ]);
  const requests = listener.logs.filter(({ message }) => message === 'request');
  assert.deepEqual(
    requests.map(({ durationMillis }) => durationMillis),
    [0, 0, 0],
  );
});

test('has a line without status for a client that left', async (t) => {
  const began = new EventEmitter();
  const handler = () => new Promise<object>((resolve) => began.emit('began', () => resolve({})));
  const environment = { ACCESS_LOG: 'true' };
  const app = await startRoutes({ routes: [get('/held', open, handler)], environment });
  t.after(app.stop);
  const wire = await openWire(app.port);
  wire.send(HELD);
  const [[goOn], [{ socket }]] = await Promise.all([once(began, 'began'), once(app.server, 'request')]);
  wire.socket.resetAndDestroy();
  await new Promise((resolve) => socket.once('close', resolve));
  goOn();
  await new Promise(setImmediate);
  assert.deepEqual(told(app.logs), [{ method: 'GET', route: '/held', status: null }]);
});

test('is off by default', async (t) => {
  const listener = await openListener(t);
  await exchange(listener.port, 'GET /api/public HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  assert.deepEqual(told(listener.logs), []);
});
