/* What a service tells `onResponse` and `onError`, and what its handlers know of their clients. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { test, type TestContext } from 'node:test';
import {
  authenticated,
  createService,
  fail,
  get,
  json,
  mount,
  needs,
  open,
  post,
  scope,
  type Route,
  type ServiceOptions,
} from '../../../src/gatehouse.ts';
import type { OnResponse, ResponseEvent } from '../../../src/gate/events.ts';
import { decision } from '../../../src/decisions.ts';
import { jsonLog } from '../../../src/log.ts';
import { makeIssuer } from '../../support/issuer.ts';
import { ask, exchange, openWire, type Ask } from '../../support/client.ts';
import { captureLog } from '../../support/captured.ts';

const issuer = makeIssuer();
const TRACE = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;

/** A service, what its hook has been told, and a client of it. */
async function serve(t: TestContext, routes: readonly Route[], options: Partial<ServiceOptions> = {}) {
  const events: ResponseEvent[] = [];
  const arrivals = new EventEmitter();

  const onResponse: OnResponse = (event) => {
    events.push(event);
    arrivals.emit('event');
  };

  const settings = { ...issuer.options, host: '127.0.0.1', port: 0, onResponse };
  const service = createService({ routes }, { ...settings, ...options });
  t.after(() => service.stop());
  const port = Number(new URL(await service.listen()).port);
  return { port, events, arrivals, service, asks: (path: string, asked?: Ask) => ask(port, path, asked) };
}

test('onResponse is told of a response with all that an audit log needs [§28]', async (t) => {
  const { asks, events } = await serve(t, [get('/orders/{id}', authenticated, () => ({}))]);
  const began = performance.now();
  await asks('/orders/7?access_token=secret', { token: issuer.token(), headers: { traceparent: TRACE } });
  const tookMillis = performance.now() - began;
  const [{ caller, durationMillis, ...others } = {} as ResponseEvent] = events;
  assert.deepEqual(others, {
    method: 'GET',
    path: '/orders/7',
    route: '/orders/{id}',
    status: 200,
    reason: null,
    clientAddress: '127.0.0.1',
    traceparent: TRACE,
  });
  assert.equal(caller?.subject, 'test-user');
  assert.ok(durationMillis > 0 && durationMillis <= tookMillis, `${durationMillis} of ${tookMillis}`);
});

test('onResponse is told of refusals, of fail, of probes, and of paths without a route', async (t) => {
  const { asks, events } = await serve(t, [
    get('/a', needs(scope('read')), () => ({})),
    get('/gone', open, () => fail(410, 'gone', 'Gone')),
  ]);
  await asks('/a');
  await asks('/a', { token: issuer.token() });
  for (const path of ['/gone', '/healthz', '/nowhere']) await asks(path, { method: 'HEAD' });
  const told = events.map(({ method, path, route, status, reason, caller }) => [
    `${method} ${path}`,
    route,
    status,
    reason,
    caller?.subject ?? caller,
  ]);
  assert.deepEqual(told, [
    ['GET /a', '/a', 401, 'no-credentials', null],
    ['GET /a', '/a', 403, 'scope-missing', 'test-user'],
    ['HEAD /gone', '/gone', 410, 'handler', null],
    ['HEAD /healthz', '/healthz', 200, null, null],
    ['HEAD /nowhere', null, 404, 'not_found', null],
  ]);
});

test('onResponse is told of responses to bytes that are not a request, with null for what is missing', async (t) => {
  const { port, events } = await serve(t, []);
  await exchange(port, 'garbage\r\n\r\n');
  await exchange(port, 'CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n');
  const known = { route: null, caller: null, clientAddress: '127.0.0.1', traceparent: null };
  assert.deepEqual(
    events.map(({ durationMillis: _, ...others }) => others),
    [
      { ...known, path: null, method: null, status: 400, reason: 'malformed-http' },
      { ...known, path: null, method: 'CONNECT', status: 400, reason: 'target-refused' },
    ],
  );
});

test('onResponse is told of a client that has gone when its handler ends, without a status, with its address [§28]', async (t) => {
  const calls = new EventEmitter();
  const held = () => new Promise<object>((resolve) => calls.emit('call', () => resolve({})));
  const { port, events, arrivals } = await serve(t, [
    get('/held', open, ({ signal }) => {
      signal.addEventListener('abort', () => calls.emit('left'));
      return held();
    }),
  ]);
  const [called, left, told] = ['call', 'left']
    .map((name) => once(calls, name))
    .concat(once(arrivals, 'event'));
  const wire = await openWire(port);
  wire.send('GET /held HTTP/1.1\r\nHost: a\r\n\r\n');
  const [answer] = (await called) ?? [];
  wire.socket.resetAndDestroy();
  await left;
  // What follows an abort would be told in this turn.
  await new Promise(setImmediate);
  assert.deepEqual(events, []);

  answer();
  await told;
  assert.deepEqual(
    events.map(({ path, status, clientAddress }) => [path, status, clientAddress]),
    [['/held', null, '127.0.0.1']],
  );
});

test('onResponse and the access log know whose client has gone while a decision waited [§28]', async (t) => {
  const calls = new EventEmitter();
  const waits = decision('waits', ({ signal }) => {
    calls.emit('call');
    return new Promise(() => signal.addEventListener('abort', () => calls.emit('left')));
  });
  const logged = captureLog(t);
  const options = { log: jsonLog({ access: true }) };
  const { port, events, arrivals } = await serve(t, [get('/held', needs(waits), () => ({}))], options);
  const called = once(calls, 'call');
  const told = once(arrivals, 'event');
  const wire = await openWire(port);
  wire.send(`GET /held HTTP/1.1\r\nHost: a\r\nAuthorization: ${issuer.bearer().authorization}\r\n\r\n`);
  await called;
  wire.socket.resetAndDestroy();
  await told;
  assert.deepEqual(
    events.map(({ route, status, reason, caller }) => [route, status, reason, caller?.subject]),
    [['/held', null, null, 'test-user']],
  );
  const line = (await logged()).find(({ message }) => message === 'request');
  assert.deepEqual([line?.status, line?.reason, line?.issuer], [null, undefined, 'idp']);
});

test('onResponse is called once the response is written, and delays or changes none', async (t) => {
  const never = () => new Promise(() => {});
  const { asks } = await serve(t, [get('/a', open, () => ({}))], { onResponse: never });
  for (let count = 0; count < 3; count += 1) assert.equal((await asks('/a')).status, 200);
});

test('no response is lost when onResponse fails, which is logged once a minute [§28]', async (t) => {
  const logged = captureLog(t);

  const failing = () => {
    throw new RangeError('secret');
  };

  for (const onResponse of [failing, async () => failing()]) {
    const { asks } = await serve(t, [get('/a', open, () => ({}))], { onResponse });
    for (let count = 0; count < 3; count += 1) assert.equal((await asks('/a')).status, 200);
  }
  const lines = await logged();
  assert.deepEqual(
    lines.map(({ level, message, reason, error }) => [level, message, reason, error]),
    Array(2).fill(['error', 'hook failed', 'bug', 'RangeError']),
  );
  assert.match(lines[0]?.frames.join(), /tell-responses\.wire\.test\.[jt]s/);
  assert.doesNotMatch(JSON.stringify(lines), /secret/);
});

test('onError is told the method and the route of an error, and null without a route [§28]', async (t) => {
  const told: unknown[][] = [];
  const bug = new Error('a bug');

  const throwing = () => {
    throw bug;
  };

  const routes = [get('/orders/{id}', open, throwing), post('/orders', open, json(), throwing)];
  const onError = (...all: unknown[]) => told.push(all);
  const { asks } = await serve(t, routes, { log: undefined, onError });
  await asks('/orders/7', { method: 'HEAD' });
  await asks('/orders', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' });
  assert.deepEqual(told, [
    [bug, { method: 'HEAD', route: '/orders/{id}' }],
    [bug, { method: 'POST', route: '/orders' }],
  ]);
});

for (const [trustProxy, address] of [
  [false, '127.0.0.1'],
  [true, '198.51.100.1'],
] as const) {
  test(`a handler gets the address ${trustProxy ? 'that a trusted proxy adds' : 'of its peer'} [§28]`, async (t) => {
    const routes = [
      get('/a', open, ({ clientAddress }) => ({ clientAddress })),
      post('/a', open, json(), ({ clientAddress }) => ({ clientAddress })),
      mount('/m', open, (_, { clientAddress }) => Response.json({ clientAddress })),
    ];
    const { asks, events } = await serve(t, routes, { trustProxy });
    const headers = { 'x-forwarded-for': '203.0.113.9, 198.51.100.1', 'content-type': 'application/json' };
    const bodies = [
      await asks('/a', { headers }),
      await asks('/a', { method: 'POST', headers, body: '{}' }),
      await asks('/m', { headers }),
    ];
    assert.deepEqual(
      bodies.map(({ body }) => body),
      Array(3).fill({ clientAddress: address }),
    );
    assert.equal(events[0]?.clientAddress, address);
  });
}

test('a handler knows the address of a client that has gone', async (t) => {
  const calls = new EventEmitter();
  const { port } = await serve(t, [
    get('/held', open, async (request) => {
      calls.emit('call');
      await once(request.signal, 'abort');
      await new Promise(setImmediate);
      calls.emit('address', request.clientAddress);
      return {};
    }),
  ]);
  const called = once(calls, 'call');
  const told = once(calls, 'address');
  const wire = await openWire(port);
  wire.send('GET /held HTTP/1.1\r\nHost: a\r\n\r\n');
  await called;
  wire.socket.resetAndDestroy();
  assert.deepEqual(await told, ['127.0.0.1']);
});

test('a service refuses onVerdict, and names who has it [§28]', () => {
  const options = { ...issuer.options, onVerdict: () => {} };
  assert.throws(() => createService({ routes: [] }, options as ServiceOptions), {
    name: 'TypeError',
    message: 'onVerdict: is an option of createGate alone; use onResponse',
  });
});
