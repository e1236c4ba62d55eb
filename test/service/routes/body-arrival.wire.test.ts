/* How a body arrives: when the client is told to send it, and what happens to an incomplete one. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { describe, test, type TestContext } from 'node:test';
import { authenticated, needs, open } from '../../../src/gate/rules/access.ts';
import { scope } from '../../../src/gate/rules/guards.ts';
import { get, post } from '../../../src/service/routes/route.ts';
import { json } from '../../../src/service/routes/inputs.ts';
import type { TokenVerifier } from '../../../src/verify/token/verify.ts';
import { clock, tokenWith, verifyToken } from '../../support/caller.ts';
import { exchange, openWire } from '../../support/client.ts';
import { responsesIn, statusesIn } from '../../support/raw-responses.ts';
import { startRoutes, type RoutesToTest } from '../../support/routes.ts';

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';

/** A service for one test. `taken` has what its handlers received. */
async function openRoutes(context: TestContext, more: Partial<RoutesToTest> = {}) {
  const taken: unknown[] = [];
  const released: (() => void)[] = [];
  const service = await startRoutes({
    routes: [
      post('/any', open, json(undefined, { limitBytes: 100 }), ({ body }) => {
        taken.push(body);
        return { body };
      }),
      post('/guarded', needs(scope('write')), json(), ({ body }) => void taken.push(body)),
      post('/authenticated', authenticated, json(), ({ body }) => void taken.push(body)),
      post('/none', open, () => ({})),
      get('/none', open, () => ({})),
      get(
        '/held',
        open,
        () => new Promise<object>((resolve) => released.push(() => resolve({ held: true }))),
      ),
    ],
    ...more,
  });
  context.after(() => service.stop());
  return { ...service, taken, released };
}

const headOf = (path: string, ...fields: readonly string[]) =>
  [`POST ${path} HTTP/1.1`, 'Host: a', 'Content-Type: application/json', ...fields, '\r\n'].join('\r\n');

const EXPECT = 'Expect: 100-continue';
const THREE = 'Content-Length: 3';
const CHUNKED = 'Transfer-Encoding: chunked';
const LAST = 'GET /none HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';

const bearer = (claims: Record<string, unknown>) => `Authorization: Bearer ${tokenWith(claims)}`;

describe('a client that expects 100 Continue', { timeout: 30_000 }, () => {
  for (const [what, framing, body] of [
    ['a length', THREE, '"x"'],
    ['chunks', CHUNKED, '3\r\n"x"\r\n0\r\n\r\n'],
  ] as const) {
    test(`gets 100 once with ${what}, when every guard has passed [RFC 9110 §10.1.1]`, async (t) => {
      const { port, taken } = await openRoutes(t);
      for (const expectation of [EXPECT, 'eXPECT: 100-CONTINUE']) {
        const wire = await openWire(port);
        wire.send(headOf('/guarded', framing, expectation, bearer({ scope: 'write' })));
        assert.equal(await wire.until((text) => text.endsWith('\r\n\r\n')), CONTINUE);
        wire.send(body);
        await wire.until((text) => text.includes(' 204 '));
        wire.send(LAST);
        const received = await wire.untilClosed();
        assert.deepEqual(statusesIn(received.slice(CONTINUE.length)), [204, 200]);
        assert.equal(taken.pop(), 'x');
      }
    });
  }

  for (const [what, path, ...fields] of [
    ['who has no token', '/guarded', THREE],
    ['whose token is refused', '/guarded', THREE, 'Authorization: Bearer x.y.z'],
    ['whose token does not have the scope', '/guarded', THREE, bearer({ scope: 'read' })],
    ['on a route that takes no body', '/none', THREE],
    ['at a path without a route', '/nowhere', THREE],
    ['whose body is too large by its length', '/any', 'Content-Length: 101'],
    ['whose body has a coding', '/any', THREE, 'Content-Encoding: gzip'],
    ['who sends two Content-Type fields', '/any', THREE, 'Content-Type: text/plain'],
    ['whose charset is refused', '/any', THREE, 'Content-Type: application/json; charset=x'],
    ['whose body is empty', '/any', 'Content-Length: 0'],
    ['who also expects something else', '/any', THREE, 'Expect: x'],
  ] as const) {
    test(`${what} gets the response without a 100 [RFC 9110 §10.1.1]`, async (t) => {
      const { port, taken } = await openRoutes(t);
      const wire = await openWire(port);
      wire.send(headOf(path, EXPECT, ...fields, 'Connection: close'));
      const received = await wire.untilClosed();
      assert.ok(!received.includes(' 100 '));
      assert.deepEqual([statusesIn(received).length, taken], [1, []]);
    });
  }

  test('of HTTP/1.0 never gets a 100 [RFC 9110 §10.1.1]', async (t) => {
    const { port, taken } = await openRoutes(t);
    const head = headOf('/any', EXPECT, THREE).replace('HTTP/1.1', 'HTTP/1.0');
    assert.deepEqual(statusesIn(await exchange(port, `${head}"x"`)), [200]);
    assert.deepEqual(taken, ['x']);
  });

  test('gets the 100 after the responses to earlier requests [RFC 9112 §9.3.2]', async (t) => {
    const { port, released } = await openRoutes(t);
    const wire = await openWire(port);
    wire.send(`GET /held HTTP/1.1\r\nHost: a\r\n\r\n${headOf('/any', EXPECT, THREE, 'Connection: close')}`);
    while (released.length === 0) await new Promise(setImmediate);
    released[0]!();
    const received = await wire.until((text) => text.includes(CONTINUE));
    assert.match(received, /^HTTP\/1\.1 200 /);
    wire.send('"x"');
    const [held, any, ...others] = responsesIn((await wire.untilClosed()).replace(CONTINUE, ''));
    assert.deepEqual([held?.text, any?.text, others], ['{"held":true}', '{"body":"x"}', []]);
  });

  test('differs from a client without an expectation, who gets no 100', async (t) => {
    const { port } = await openRoutes(t);
    const received = await exchange(port, `${headOf('/any', THREE, 'Connection: close')}"x"`);
    assert.ok(!received.includes(' 100 '));
  });
});

/** Resolves when the socket has closed, with any error. */
const closing = (socket: Socket) => new Promise((resolve) => socket.once('close', resolve));

/** Verifies tokens as usual, but only once released. */
function heldUp() {
  const holder = new EventEmitter();
  const released = once(holder, 'release');

  const verify: TokenVerifier = async (token) => {
    await released;
    return verifyToken(token);
  };

  return { verify, release: () => void holder.emit('release') };
}

/** Requests time out soon, and are checked often. */
const hasten = (server: Server) =>
  void Object.assign(server, { headersTimeout: 100, requestTimeout: 100, connectionsCheckingInterval: 10 });

describe('a body that does not arrive completely', { timeout: 30_000 }, () => {
  for (const [what, ...pieces] of [
    ['by its length', headOf('/any', THREE), '"x'],
    ['in chunks', headOf('/any', CHUNKED), '2\r\n"x\r\n'],
    ['not at all', headOf('/any', THREE)],
    ['though it was asked for', headOf('/any', THREE, EXPECT)],
  ] as const) {
    test(`a request whose body does not arrive in time (${what}) gets 408 [RFC 9110 §15.5.9]`, async (t) => {
      const { port, logs, taken } = await openRoutes(t, { prepare: hasten });
      const wire = await openWire(port);
      for (const piece of pieces) wire.send(piece);
      const [response, ...others] = responsesIn((await wire.untilClosed()).replace(CONTINUE, ''));
      assert.deepEqual([response?.status, response?.fields.get('connection'), others], [408, 'close', []]);
      assert.equal(JSON.parse(response?.text ?? '').error, 'request_timeout');
      assert.deepEqual([logs.map(({ reason }) => reason), taken], [['request_timeout'], []]);
    });
  }

  test('a request whose body does not arrive in time gets 408 after the responses to earlier requests', async (t) => {
    const { port } = await openRoutes(t, { prepare: hasten });
    const received = await exchange(port, `GET /none HTTP/1.1\r\nHost: a\r\n\r\n${headOf('/any', THREE)}"x`);
    assert.deepEqual(statusesIn(received), [200, 408]);
  });

  test('a request whose body does not arrive in time gets 408 once its token, which waits for keys, is verified', async (t) => {
    const { verify, release } = heldUp();
    const { port, logs, server } = await openRoutes(t, { prepare: hasten, verify });
    const wire = await openWire(port);
    const timedOut = once(server, 'clientError');
    wire.send(`${headOf('/authenticated', THREE, bearer({}))}"x`);
    await timedOut;
    release();
    assert.deepEqual(statusesIn(await wire.untilClosed()), [408]);
    assert.deepEqual(
      logs.map(({ reason }) => reason),
      ['request_timeout'],
    );
  });

  test('a request whose body does not arrive gets 408 after 15 seconds even if Node does not time it [docs/logs-and-metrics.md]', async (t) => {
    const untimed = (server: Server) => void Object.assign(server, { headersTimeout: 0, requestTimeout: 0 });
    const { port, server } = await openRoutes(t, { prepare: untimed });
    const received = exchange(port, `${headOf('/any', THREE)}"x`);
    const [request] = (await once(server, 'request')) as [IncomingMessage];
    while (request.listenerCount('close') === 0) await new Promise(setImmediate);
    for (let second = 0; second < 15; second += 1) clock.advance(1_000);
    assert.equal(request.destroyed, false);
    clock.advance(1_000);
    assert.deepEqual(statusesIn(await received), [408]);
  });

  test('a caller is refused without waiting for a body that does not arrive', async (t) => {
    const { port, released } = await openRoutes(t, { prepare: hasten });
    assert.deepEqual(statusesIn(await exchange(port, `${headOf('/guarded', THREE)}"x`)), [401]);
    assert.deepEqual(released, []);
  });

  test('a body is not awaited if the header fields of its request were late [RFC 9110 §15.5.9]', async (t) => {
    const { port, server, released, taken } = await openRoutes(t, { prepare: hasten });
    const wire = await openWire(port);
    const late = once(server, 'clientError');
    const head = headOf('/any', THREE);
    wire.send(`GET /held HTTP/1.1\r\nHost: a\r\n\r\n${head.slice(0, -4)}`);
    await late;
    wire.send(`${head.slice(-4)}"x"`);
    for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate);
    released[0]!();
    assert.deepEqual([statusesIn(await wire.untilClosed()), taken], [[200, 408], []]);
  });

  for (const broken of ['x\r\n', '3\r\n"x"x', '-1\r\n']) {
    test(`a request with the broken chunk ${JSON.stringify(broken)} gets 400 as its only response`, async (t) => {
      const { port, logs, taken, server } = await openRoutes(t);
      for (const isSplit of [false, true]) {
        const asked = once(server, 'request');
        const wire = await openWire(port);
        wire.send(headOf('/any', CHUNKED) + (isSplit ? '' : broken));
        await asked;
        await new Promise(setImmediate);
        if (isSplit) wire.send(broken);
        const [response, ...others] = responsesIn(await wire.untilClosed());
        assert.deepEqual([response?.status, response?.fields.get('connection'), others], [400, 'close', []]);
        assert.equal(JSON.parse(response?.text ?? '').error, 'invalid_request');
        assert.deepEqual([logs.at(-1)?.reason, taken], ['malformed-http', []]);
      }
      assert.equal(logs.length, 2);
    });
  }

  test('a broken chunk does not lose the response to the request before it', async (t) => {
    const { port, taken } = await openRoutes(t);
    const first = `${headOf('/any', CHUNKED)}1\r\n1\r\n0\r\n\r\n`;
    assert.deepEqual(statusesIn(await exchange(port, `${first}${headOf('/any', CHUNKED)}x\r\n`)), [200, 400]);
    assert.deepEqual(taken, [1]);
  });

  for (const [how, leave] of [
    ['by a reset', (wire) => wire.socket.resetAndDestroy()],
    ['by closing its side', (wire) => wire.socket.end()],
    ['by closing the connection', (wire) => wire.destroy()],
  ] as const satisfies readonly (readonly [string, (wire: Awaited<ReturnType<typeof openWire>>) => void])[]) {
    for (const [what, head, half] of [
      ['by its length', headOf('/any', THREE), '"x'],
      ['in chunks', headOf('/any', CHUNKED), '2\r\n"x\r\n'],
    ] as const) {
      test(`a body that the client cuts off ${how} (${what}) is logged at debug at most`, async (t) => {
        const { port, logs, taken, server } = await openRoutes(t);
        const asked = once(server, 'request') as Promise<[IncomingMessage]>;
        const wire = await openWire(port);
        wire.send(head + half);
        const [request] = await asked;
        while (request.listenerCount('close') === 0) await new Promise(setImmediate);
        const gone = closing(request.socket);
        leave(wire);
        await gone;
        assert.equal(await wire.untilClosed(), '');
        for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
        assert.deepEqual([logs.filter(({ level }) => level !== 'debug'), taken], [[], []]);
        assert.deepEqual(statusesIn(await exchange(port, LAST)), [200]);
      });
    }
  }

  test('a body whose client left before the body was read is not logged', async (t) => {
    const { verify, release } = heldUp();
    const { port, logs, taken, server } = await openRoutes(t, { verify });
    const asked = once(server, 'request') as Promise<[IncomingMessage]>;
    const wire = await openWire(port);
    wire.send(`${headOf('/authenticated', THREE, bearer({}))}"x`);
    const [request] = await asked;
    const gone = closing(request.socket);
    wire.socket.resetAndDestroy();
    await gone;
    release();
    for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
    assert.deepEqual([logs, taken], [[], []]);
  });

  test('a body that the client cuts off by closing its side does not lose the responses to earlier requests', async (t) => {
    const { port, released } = await openRoutes(t);
    const wire = await openWire(port);
    wire.socket.allowHalfOpen = true;
    wire.send(`GET /held HTTP/1.1\r\nHost: a\r\n\r\n${headOf('/any', THREE)}"x`);
    while (released.length === 0) await new Promise(setImmediate);
    wire.socket.end();
    for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
    released[0]!();
    assert.deepEqual(statusesIn(await wire.untilClosed()), [200]);
    wire.destroy();
  });
});
