/* What a gate tells `onVerdict` and `onError`. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import {
  claimCheck,
  createGate,
  needs,
  open,
  optional,
  scope,
  type GateOptions,
} from '../../src/gatehouse.ts';
import type { VerdictEvent } from '../../src/gate/events.ts';
import { createMetrics } from '../../src/metrics.ts';
import { resourceMetadata } from '../../src/options/resource-metadata.ts';
import { createProof, createProofKey } from '../../src/testing.ts';
import { makeIssuer } from '../support/issuer.ts';
import { createGateMethods } from '../../src/gate/create-gate.ts';
import { turnAway } from '../../src/gate/decide.ts';
import { unavailable } from '../../src/verify/base/refusal.ts';
import { clock } from '../support/caller.ts';
import { captureLog } from '../support/captured.ts';
import { createRoutes } from '../support/routes.ts';

const issuer = makeIssuer();
const mayRead = needs(scope('read:orders'));
const READER = issuer.bearer({ scope: 'read:orders' });
const TRACE = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;

/** A gate, and what its hook has been told. */
function openGate(t: TestContext, options: Partial<GateOptions> = {}) {
  const events: VerdictEvent[] = [];
  const gate = createGate({ ...issuer.options, onVerdict: (event) => events.push(event), ...options });
  t.after(gate.close);
  return { gate, events };
}

const requestWith = (url: string, fields: object = {}) => ({
  method: 'GET',
  url,
  rawHeaders: ['Host', 'api.test', ...Object.entries(fields).flat()],
  socket: { remoteAddress: '192.0.2.1' },
});

test('onVerdict is told of an admitted request: who it was, from where, and no status [§28]', async (t) => {
  const { gate, events } = openGate(t);
  const { caller } = await gate.check(requestWith('/orders?a', { ...READER, traceparent: TRACE }), mayRead);
  const known = { method: 'GET', path: '/orders', clientAddress: '192.0.2.1', traceparent: TRACE };
  assert.deepEqual(events, [{ ...known, admitted: true, status: null, reason: null, caller }]);
  assert.equal(caller?.subject, 'test-user');
});

test('onVerdict is told of a refused request with its status and reason, and the caller once that is known', async (t) => {
  const { gate, events } = openGate(t);
  await gate.check(requestWith('/orders'), mayRead);
  await gate.check(requestWith('/orders', issuer.bearer()), mayRead);
  const told = events.map(({ admitted, status, reason, caller }) => [
    admitted,
    status,
    reason,
    caller?.subject,
  ]);
  assert.deepEqual(told, [
    [false, 401, 'no-credentials', undefined],
    [false, 403, 'scope-missing', 'test-user'],
  ]);
  assert.equal(events[0]?.caller, null);
});

test('onVerdict is told of anonymous requests, without a caller', async (t) => {
  const { gate, events } = openGate(t);
  for (const access of [open, optional]) await gate.check(requestWith('/'), access);
  const told = events.map(({ admitted, caller, path }) => [admitted, caller, path]);
  assert.deepEqual(told, Array(2).fill([true, null, '/']));
});

test('onVerdict is told of a request whose URL or form cannot be one', async (t) => {
  const { gate, events } = openGate(t);
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  await gate.check({ method: 'GET', url: 'https://a b/x', headers: [['traceparent', traceparent]] }, mayRead);
  await gate.check({ method: 'GET', url: 'orders', headers: [] }, mayRead);
  await gate.check(requestWith('/x/../admin'), mayRead);
  assert.deepEqual(
    events.map(({ method, path, reason, status, traceparent: trace }) => [
      method,
      path,
      reason,
      status,
      trace,
    ]),
    [
      ['GET', '/x', 'host-refused', 400, traceparent],
      ['GET', null, 'host-refused', 400, null],
      ['GET', '/x/../admin', 'target-refused', 400, null],
    ],
  );
});

test('onVerdict is told of what a gate answers itself, and of bugs', async (t) => {
  const metadata = resourceMetadata({ url: 'https://api.test' });
  const { gate, events } = openGate(t, { metadata, log: undefined });
  await gate.check(requestWith('/.well-known/oauth-protected-resource'), mayRead);
  const faulty = claimCheck('is good', () => assert.fail());
  await gate.check(requestWith('/', READER), needs(faulty));
  assert.deepEqual(
    events.map(({ admitted, status, reason }) => [admitted, status, reason]),
    [
      [false, 200, null],
      [false, 500, 'bug'],
    ],
  );
});

test('onVerdict is told of a client that has gone while a decision waited, without a status or reason [§28]', async () => {
  const { way } = await createRoutes({ routes: [] });
  const gone = turnAway({}, unavailable('decision-unavailable').with({ isGone: true }));
  const told: object[] = [];
  const { check } = createGateMethods({
    ...way,
    clock,
    decide: () => gone,
    tell: async (_request, { reason }, more) => void told.push({ reason, ...more }),
  });
  await check(requestWith('/'), mayRead);
  assert.deepEqual(told, [{ reason: undefined, admitted: false, status: null }]);
});

test('a gate counts and logs a refusal at the path of a probe, which is one of its server [§16]', async (t) => {
  const metrics = createMetrics();
  const lines: (readonly [message: string, reason: unknown])[] = [];
  const log: GateOptions['log'] = (_, message, fields) => lines.push([message, Object(fields).reason]);
  const { gate } = openGate(t, { metrics, log, fetchKeys: issuer.options.fetchKeys });
  for (const path of ['/healthz', '/readyz?full']) await gate.check(requestWith(path), mayRead);
  gate.close();
  assert.match(metrics.text(), /refusals_total\{reason="no-credentials"\} 2\n/);
  const refused = ['request refused', 'no-credentials'];
  const told = lines.filter(([message]) => /refused/.test(message));
  assert.deepEqual(told, [refused, refused, ['requests refused', undefined]]);
});

test('onVerdict is told of a further access of a caller, which has no request', async (t) => {
  const { gate, events } = openGate(t);
  const { caller } = await gate.check(requestWith('/', READER), mayRead);
  gate.authorize(caller!, mayRead);
  gate.authorize(caller!, needs(scope('write:orders')));
  await new Promise(setImmediate);
  const none = { method: null, path: null, clientAddress: null, traceparent: null };
  assert.deepEqual(events.slice(1), [
    { ...none, admitted: true, status: null, reason: null, caller },
    { ...none, admitted: false, status: 403, reason: 'scope-missing', caller },
  ]);
});

test('a gate logs a refused or failed further access without a method, since it is about no request', async (t) => {
  const lines: unknown[] = [];
  const log: GateOptions['log'] = (_, message, fields) => lines.push([message, Object(fields).method]);
  const { gate } = openGate(t, { log });
  const { caller } = await gate.check(requestWith('/', READER), mayRead);
  lines.length = 0;
  gate.authorize(caller!, needs(scope('write:orders')));

  const throwing = () => {
    throw new Error('a bug');
  };

  gate.authorize(caller!, needs(claimCheck('is good', throwing)));
  assert.deepEqual(lines, [
    ['request refused', null],
    ['request failed', null],
  ]);
});

test('onVerdict is told the address that a trusted proxy adds [§28]', async (t) => {
  const { gate, events } = openGate(t, { trustProxy: true });
  await gate.check(requestWith('/', { 'X-Forwarded-For': '203.0.113.9, 198.51.100.1' }), open);
  assert.equal(events[0]?.clientAddress, '198.51.100.1');
});

test('onVerdict is told of requests that admit answers, with the address of their sockets', async (t) => {
  const { gate, events } = openGate(t);

  const server = createServer((request, response: ServerResponse) =>
    gate.admit(request, response, mayRead).then((admission) => admission && response.end()),
  ).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/orders`;
  for (const headers of [{}, READER]) await fetch(url, { headers: { ...headers, connection: 'close' } });
  assert.deepEqual(
    events.map(({ path, admitted, clientAddress }) => [path, admitted, clientAddress]),
    [
      ['/orders', false, '127.0.0.1'],
      ['/orders', true, '127.0.0.1'],
    ],
  );
});

test('onVerdict is told the address of a client that left while its keys were fetched [§28]', async (t) => {
  let release = () => {};

  const left = new Promise<void>((resolve) => {
    release = resolve;
  });

  const fetchKeys = async () => {
    await left;
    return issuer.options.fetchKeys();
  };

  const { gate, events } = openGate(t, { fetchKeys });
  const server = createServer((request, response) => void gate.admit(request, response, mayRead));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const { authorization } = issuer.bearer();
  client.write(`GET /orders HTTP/1.1\r\nHost: api.test\r\nAuthorization: ${authorization}\r\n\r\n`);
  const [{ socket }] = await once(server, 'request');
  socket.once('close', release);
  client.resetAndDestroy();
  await left;
  await gate.check(requestWith('/', READER), mayRead);
  assert.deepEqual([events[0]?.reason, events[0]?.clientAddress], ['scope-missing', '127.0.0.1']);
});

test('a gate without onVerdict does not ask for the address of a client', async (t) => {
  const { gate } = openGate(t, { onVerdict: undefined });
  const socket = {
    get remoteAddress() {
      return assert.fail('asked');
    },
  };
  const { caller } = await gate.check({ ...requestWith('/', READER), socket }, mayRead);
  assert.equal(caller?.subject, 'test-user');
});

test('nothing that onVerdict is told holds a token or a proof [§28]', async (t) => {
  const { gate, events } = openGate(t, { dpopMode: 'ALLOWED' });
  const key = createProofKey();
  const token = issuer.boundToken(key, { scope: 'read:orders' });
  const dpop = createProof(key, { method: 'GET', url: 'http://api.test/orders' }, token);
  const fields = { Authorization: `DPoP ${token}`, DPoP: dpop };
  assert.ok((await gate.check(requestWith('/orders', fields), mayRead)).caller);
  await gate.check(requestWith('/orders', fields), mayRead);
  assert.deepEqual(
    events.map(({ reason }) => reason),
    [null, 'proof-replayed'],
  );
  const text = JSON.stringify(events);
  for (const secret of [token, dpop].flatMap((jws) => jws.split('.'))) assert.ok(!text.includes(secret));
});

test('a verdict does not depend on its hook, and a hook that fails is logged', async (t) => {
  const logged = captureLog(t);
  for (const onVerdict of [() => assert.fail('secret'), async () => assert.fail('secret')]) {
    const { gate } = openGate(t, { onVerdict });
    for (const fields of [READER, READER]) {
      assert.ok((await gate.check(requestWith('/', fields), mayRead)).caller);
    }
  }
  const lines = (await logged()).filter(({ message }) => message === 'hook failed');
  assert.deepEqual(
    lines.map(({ level, error }) => [level, error]),
    Array(2).fill(['error', 'AssertionError']),
  );
  assert.doesNotMatch(JSON.stringify(lines), /secret/);
});

test('onError is told the method of a request that a gate could not check, and no route', async (t) => {
  const told: unknown[][] = [];
  const bug = new Error('a bug');

  const faulty = claimCheck('is good', () => {
    throw bug;
  });
  const { gate } = openGate(t, { log: undefined, onError: (...all) => told.push(all) });
  await gate.check(requestWith('/', READER), needs(faulty));
  assert.deepEqual(told, [[bug, { method: 'GET', route: null }]]);
});

test('a gate refuses onResponse, and names who has it [§28]', () => {
  assert.throws(() => createGate({ ...issuer.options, onResponse: () => {} } as GateOptions), {
    name: 'TypeError',
    message: 'onResponse: is an option of createService alone; remove it here',
  });
});
