/* The end of the listener: no new connections, responses to in-flight requests, a deadline
   (docs/deploy.md). */
import { strict as assert } from 'node:assert';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, test, type TestContext } from 'node:test';
import { open } from '../../../src/gate/rules/access.ts';
import { get } from '../../../src/service/routes/route.ts';
import { clock } from '../../support/caller.ts';
import { exchange, openWire } from '../../support/client.ts';
import {
  CONNECT,
  GARBAGE,
  GOOD,
  HELD,
  HOST,
  LAST,
  openListener,
  openUsedWire,
  post,
  PREFLIGHT,
  untilClosing,
} from '../../support/listener.ts';
import { statusesIn } from '../../support/raw-responses.ts';
import { startRoutes } from '../../support/routes.ts';

/** Of all responses but the first: the status, and whether the response closes the connection. */
const laterOf = (text: string) =>
  text
    .split(/(?=HTTP\/1\.1 )/)
    .slice(1)
    .map((response) => [...statusesIn(response), response.includes('\r\nConnection: close\r\n')]);

/** The responses of a drain to a request that waits, and to bytes behind it that came before or after its begin. */
async function drainedBehind(context: TestContext, bytes: string, isBefore: boolean) {
  const listener = await openListener(context);
  const wire = await openUsedWire(listener.port);
  const arrival = listener.held();
  if (isBefore) wire.send(HELD + bytes);
  const held = isBefore ? await arrival : undefined;
  const stopped = listener.stop();
  await listener.closing();
  if (!isBefore) wire.send(HELD + bytes);
  const response = held ?? (await arrival);
  response();
  const responses = laterOf(await wire.untilClosed());
  assert.equal(await stopped, 'drained');
  return responses;
}

describe('a listener that stops', { timeout: 120_000 }, () => {
  test('sends Connection: close with every response once the port is closed [RFC 9112 §9.6]', async (t) => {
    const listener = await openListener(t);
    const preflight = `OPTIONS /healthz HTTP/1.1\r\n${HOST}${PREFLIGHT}\r\n`;
    const requests: [string, number][] = [
      [GOOD, 200],
      [`HEAD /healthz HTTP/1.1\r\n${HOST}\r\n`, 200],
      [preflight, 204],
      [`GET /api/private HTTP/1.1\r\n${HOST}\r\n`, 401],
      [`GET /nowhere HTTP/1.1\r\n${HOST}\r\n`, 404],
      [post(''), 405],
      [`GET /readyz HTTP/1.1\r\n${HOST}\r\n`, 503],
      [GARBAGE, 400],
    ];
    const wires = await Promise.all(requests.map(() => openWire(listener.port)));
    while (listener.sockets.length < wires.length) await once(listener.server, 'connection');
    listener.beginStopping();
    const stopped = listener.stop();
    await listener.closing();
    for (const [index, [bytes, status]] of requests.entries()) {
      const wire = wires[index]!;
      wire.send(bytes);
      assert.match(
        await wire.untilClosed(),
        new RegExp(`^HTTP/1\\.1 ${status} [^]*\\r\\nConnection: close\\r\\n`),
      );
    }
    assert.equal(await stopped, 'drained');
  });

  test('sends responses to all requests that arrive together after the port is closed, and closes with the last [RFC 9112 §9.6]', async (t) => {
    const listener = await openListener(t);
    const wire = await openUsedWire(listener.port);
    const stopped = listener.stop();
    await listener.closing();
    const arrival = listener.held();
    wire.send(HELD + GOOD + GOOD);
    const response = await arrival;
    response();
    assert.deepEqual(laterOf(await wire.untilClosed()), [
      [200, false],
      [200, false],
      [200, true],
    ]);
    assert.equal(await stopped, 'drained');
  });

  test('sends the responses that wait for an earlier response [RFC 9112 §9.6]', async (t) => {
    const listener = await openListener(t);
    const wire = await openUsedWire(listener.port);
    const arrival = listener.held();
    wire.send(HELD + GOOD + GOOD);
    const response = await arrival;
    const stopped = listener.stop();
    await listener.closing();
    response();
    await wire.until((text) => statusesIn(text).length === 4 && text.endsWith('}'));
    listener.clock.advance(1_000);
    assert.deepEqual(statusesIn(await wire.untilClosed()), [200, 200, 200, 200]);
    assert.equal(await stopped, 'drained');
  });

  for (const [what, bytes] of Object.entries({ CONNECT, 'bytes that are no request': GARBAGE })) {
    for (const isBefore of [true, false]) {
      const when = isBefore ? 'before' : 'after';
      test(`refuses ${what} behind a response, and closes with that, if both came ${when} the port was closed [RFC 9112 §9.6]`, async (t) => {
        assert.deepEqual(await drainedBehind(t, bytes, isBefore), [
          [200, false],
          [400, true],
        ]);
      });
    }
  }

  test('refuses nothing behind a response with which the client ends the connection [RFC 9112 §9.6]', async (t) => {
    const listener = await openListener(t);
    const wire = await openUsedWire(listener.port);
    const stopped = listener.stop();
    await listener.closing();
    const arrival = listener.held();
    wire.send(HELD.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n') + GARBAGE);
    const response = await arrival;
    response();
    assert.deepEqual(laterOf(await wire.untilClosed()), [[200, true]]);
    assert.equal(await stopped, 'drained');
  });

  test('closes on Deno with the response before what is no request, since Deno would send nothing after it', async (t) => {
    Reflect.set(globalThis, 'Deno', {});
    t.after(() => Reflect.deleteProperty(globalThis, 'Deno'));
    for (const isBefore of [true, false]) {
      assert.deepEqual(await drainedBehind(t, GARBAGE, isBefore), [[200, true]]);
    }
  });

  test('closes the connection after a request that was still arriving', async (t) => {
    const listener = await openListener(t);
    const wire = await openUsedWire(listener.port);
    const bytes = post('Content-Length: 6\r\n', 'abcdef');
    wire.send(bytes.slice(0, -3));
    while (listener.sockets[0]?.bytesRead !== GOOD.length + bytes.length - 3) {
      await new Promise(setImmediate);
    }
    const stopped = listener.stop();
    await listener.closing();
    wire.send(bytes.slice(-3));
    const text = await wire.untilClosed();
    assert.deepEqual(statusesIn(text), [200, 405]);
    assert.match(text, /\r\nConnection: close\r\n/);
    assert.equal(await stopped, 'drained');
  });

  test('runs no request behind a response that closes the connection, even before it stops [RFC 9112 §9.6]', async (t) => {
    const listener = await openListener(t);
    const text = await exchange(listener.port, post('Content-Length: 3\r\n', 'abc') + GOOD);
    assert.deepEqual(statusesIn(text), [405]);
  });

  test('refuses new connections once the port is closed', async (t) => {
    const listener = await openListener(t);
    const stopped = listener.stop();
    await listener.closing();
    await assert.rejects(openWire(listener.port), { code: 'ECONNREFUSED' });
    assert.equal(await stopped, 'drained');
  });

  test('first serves the connections that the system has accepted, which closing at once would reset', async (t) => {
    const listener = await openListener(t);
    const wires = Array.from({ length: 50 }, () => openWire(listener.port));
    // Node opens the connections in the next tick, and accepts none of them before the next turn.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    const stopped = listener.stop();
    assert.equal(listener.sockets.length, 0);
    const received = wires.map(async (opening) => {
      const wire = await opening;
      wire.send(LAST);
      return statusesIn(await wire.untilClosed());
    });
    assert.deepEqual(await Promise.all(received), Array(50).fill([200]));
    listener.clock.advance(1_000);
    assert.equal(await stopped, 'drained');
  });

  test('closes the port after a thousand turns without a new connection, or after two from a quarter of a second on', async (t) => {
    const listener = await openListener(t);
    const stopped = listener.stop();

    /** Whether the port is open still, three turns after the last of these connections. */
    async function outlasts(connections: number) {
      for (let count = 0; count < connections; count += 1) (await openWire(listener.port)).destroy();
      for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
      return listener.server.listening;
    }

    assert.equal(await outlasts(50), true);
    listener.clock.advance(249);
    assert.equal(await outlasts(50), true);
    listener.clock.advance(1);
    assert.equal(await outlasts(1), false);
    await listener.gone();
    listener.clock.advance(1_000);
    assert.equal(await stopped, 'drained');
  });

  test('writes no response before the port is closed, but then all, with Connection: close, so that no balancer opens other connections meanwhile', async (t) => {
    const listener = await openListener(t);
    const used = await openUsedWire(listener.port);
    const inFlight = await openUsedWire(listener.port);
    const before = used.socket.bytesRead;
    const arrival = listener.held();
    inFlight.send(HELD);
    const response = await arrival;
    const stopped = listener.stop();
    response();
    const late = await openWire(listener.port);
    used.send(GOOD + GOOD);
    late.send(GOOD);
    // Each of these keeps the port open for a few turns.
    while (listener.sockets.length < 10) (await openWire(listener.port)).destroy();
    assert.equal(listener.server.listening, true);
    const sockets = [late, used, inFlight].map(({ socket }) => socket);
    assert.deepEqual(
      sockets.map(({ bytesRead }) => bytesRead),
      [0, before, before],
    );
    await listener.closing();
    assert.deepEqual(statusesIn(await late.untilClosed()), [200]);
    assert.match(await inFlight.untilClosed(), /\r\nConnection: close\r\n/);
    const responses = (await used.untilClosed()).split(/(?=HTTP\/1\.1 )/);
    assert.deepEqual(
      responses.map((text) => text.includes('\r\nConnection: close\r\n')),
      [false, false, true],
    );
    listener.clock.advance(1_000);
    assert.equal(await stopped, 'drained');
  });

  test('begins to serve no request that arrives before the port is closed, but then does', async (t) => {
    let calls = 0;

    const handle = () => {
      calls += 1;
      return {};
    };

    const app = await startRoutes({ routes: [get('/count', open, handle)] });
    t.after(() => app.stop());
    const wire = await openWire(app.port);
    const drained = app.drain();
    const arrival = once(app.server, 'request');
    wire.send(`GET /count HTTP/1.1\r\n${HOST}\r\n`);
    await arrival;
    assert.deepEqual([app.server.listening, calls], [true, 0]);
    assert.deepEqual(statusesIn(await wire.untilClosed()), [200]);
    assert.deepEqual([app.server.listening, calls], [false, 1]);
    clock.advance(1_000);
    assert.equal(await drained, 'drained');
  });

  test('writes no response of a request in progress before the port is closed', async (t) => {
    let finish = (_: object) => {};

    const handle = () =>
      new Promise<object>((resolve) => {
        finish = resolve;
      });

    const app = await startRoutes({ routes: [get('/slow', open, handle)] });
    t.after(() => app.stop());
    const wire = await openWire(app.port);
    const arrival = once(app.server, 'request');
    wire.send(`GET /slow HTTP/1.1\r\n${HOST}\r\n`);
    const [{ socket }] = await arrival;
    const drained = app.drain();
    finish({});
    for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
    assert.deepEqual([app.server.listening, socket.bytesWritten], [true, 0]);
    assert.deepEqual(statusesIn(await wire.untilClosed()), [200]);
    assert.equal(app.server.listening, false);
    clock.advance(1_000);
    assert.equal(await drained, 'drained');
  });

  test('closes the port after a second, even if a connection comes in each turn', async (t) => {
    const listener = await openListener(t);
    const stopped = listener.stop();
    const knocking = new Set<Socket>();

    /** For so many turns, or until the port is closed. */
    async function knock(turns: number) {
      for (let turn = 0; turn < turns && listener.server.listening; turn += 1) {
        const socket = connect(listener.port, '127.0.0.1');
        socket.on('error', () => {}).on('connect', () => socket.destroy());
        knocking.add(socket);
        await new Promise(setImmediate);
      }
    }

    await knock(20);
    listener.clock.advance(999);
    await knock(20);
    assert.equal(listener.server.listening, true);
    listener.clock.advance(1);
    await knock(20);
    assert.equal(listener.server.listening, false);
    for (const socket of knocking) socket.destroy();
    await listener.gone();
    listener.clock.advance(1_000);
    assert.equal(await stopped, 'drained');
  });

  test('leaves no timer behind', async (t) => {
    const listener = await openListener(t);
    assert.equal(await listener.stop(), 'drained');
    assert.deepEqual(listener.clock.pending, []);
  });

  test('closes connections with no in-flight request after one second, not at once', async (t) => {
    const listener = await openListener(t);
    const idle = await openUsedWire(listener.port);
    const asking = await openUsedWire(listener.port);
    const silent = await openWire(listener.port);
    const unused = await openWire(listener.port);
    while (listener.sockets.length < 4) await once(listener.server, 'connection');
    const stopped = listener.stop();
    await listener.closing();
    listener.clock.advance(999);
    // Last-moment requests get responses, on a used and on an unused connection.
    for (const wire of [asking, silent]) wire.send(LAST);
    assert.deepEqual(statusesIn(await asking.untilClosed()), [200, 200]);
    assert.deepEqual(statusesIn(await silent.untilClosed()), [200]);
    await listener.gone(2);
    assert.deepEqual(
      listener.sockets.map(({ destroyed }) => destroyed),
      [false, true, true, false],
    );
    listener.clock.advance(1);
    assert.deepEqual(statusesIn(await idle.untilClosed()), [200]);
    assert.equal(await unused.untilClosed(), '');
    assert.equal(await stopped, 'drained');
  });

  test('serves a request that the system has when that second is over, even if Node has not read it', async (t) => {
    const listener = await openListener(t);
    const wire = await openUsedWire(listener.port);
    const stopped = listener.stop();
    await listener.closing();
    // In one turn, as when the process gets no processor for a while.
    wire.send(LAST);
    listener.clock.advance(1_000);
    assert.deepEqual(statusesIn(await wire.untilClosed()), [200, 200]);
    assert.equal(await stopped, 'drained');
  });

  test('answers in-flight requests, and those that have partly arrived, after closing idle connections', async (t) => {
    const listener = await openListener(t);
    const busy = await openWire(listener.port);
    const half = await openWire(listener.port);
    const arrival = listener.held();
    busy.send(HELD);
    const response = await arrival;
    half.send(GOOD.slice(0, 20));
    while (listener.sockets[1]?.bytesRead !== 20) await new Promise(setImmediate);
    const stopped = listener.stop();
    await listener.closing();
    listener.clock.advance(9_999);
    half.send(GOOD.slice(20));
    assert.deepEqual(statusesIn(await half.untilClosed()), [200]);
    response();
    assert.deepEqual(statusesIn(await busy.untilClosed()), [200]);
    assert.equal(await stopped, 'drained');
  });

  test('gives a client time to read a written response before the service closes the connection [RFC 9112 §9.6]', async (t) => {
    // More than the buffers of two sockets hold.
    const text = 'x'.repeat(12_000_000);
    const app = await startRoutes({ routes: [get('/large', open, () => ({ text }))] });
    t.after(() => app.stop());
    const accepted = once(app.server, 'connection') as Promise<[Socket]>;
    const client = connect(app.port, '127.0.0.1').pause();
    client.write(`GET /large HTTP/1.1\r\n${HOST}\r\n`);
    const [socket] = await accepted;
    while (socket.writableLength === 0) await new Promise(setImmediate);
    const drained = app.drain();
    await untilClosing(app.server);
    clock.advance(1_000);
    let length = 0;
    client.on('data', (piece) => {
      length += piece.length;
    });
    client.resume();
    while (length < text.length) await once(client, 'data');
    // No request is in flight on it.
    clock.advance(1_000);
    assert.equal(await drained, 'drained');
  });

  test('takes at most ten seconds, even if a request does not end', async (t) => {
    const listener = await openListener(t);
    const busy = await openWire(listener.port);
    const half = await openWire(listener.port);
    const arrival = listener.held();
    busy.send(HELD);
    await arrival;
    half.send('GET');
    while (listener.sockets[1]?.bytesRead !== 3) await new Promise(setImmediate);
    let outcome = 'waiting';
    const stopped = listener.stop().then((how) => {
      outcome = how;
    });
    await listener.closing();
    listener.clock.advance(9_999);
    await new Promise(setImmediate);
    assert.deepEqual(
      [outcome, ...listener.sockets.map(({ destroyed }) => destroyed)],
      ['waiting', false, false],
    );
    listener.clock.advance(1);
    await stopped;
    assert.equal(outcome, 'deadline');
    assert.deepEqual([await busy.untilClosed(), await half.untilClosed()], ['', '']);
    await listener.gone();
  });
});
