/* What the listener checks of a request before its route: expectations, upgrades, sizes and times
   (docs/how-a-request-is-checked.md, docs/logs-and-metrics.md). */
import { strict as assert } from 'node:assert';
import { once } from 'node:events';
import type { Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { open } from '../../../src/gate/rules/access.ts';
import { Listener } from '../../../src/service/connection/listener.ts';
import { createListeningService, OWN_ROUTES } from '../../../src/service/create-service.ts';
import { bytes } from '../../../src/service/routes/inputs.ts';
import { readServiceOptions } from '../../../src/service/options.ts';
import { put } from '../../../src/service/routes/route.ts';
import { makeIssuer } from '../../support/issuer.ts';
import { exchange, openWire } from '../../support/client.ts';
import { TestClock } from '../../support/clock.ts';
import {
  CONNECT,
  GARBAGE,
  get,
  GOOD,
  HOST,
  LAST,
  openListener,
  openUsedWire,
  ORIGIN,
  post,
  PREFLIGHT,
} from '../../support/listener.ts';
import { responsesIn, assertRefused, statusesIn } from '../../support/raw-responses.ts';

const TOO_LARGE = 'The header fields of the request are too large';

describe('the listener', { timeout: 120_000 }, () => {
  test('refuses any expectation but a single 100-continue, with an ordinary response [RFC 9110 §10.1.1]', async (t) => {
    const listener = await openListener(t);
    const preflight = `OPTIONS /healthz HTTP/1.1\r\n${HOST}Expect: x\r\n${PREFLIGHT}\r\n`;
    const others = [
      '200-ok',
      '100-continue, 200-ok',
      '200-ok; 100-continue',
      '100-continue=1',
      '"100-continue"',
      '',
    ];
    const requests = [
      ...others.map((expectation) => get(`${HOST}Expect: ${expectation}\r\n`)),
      get(`${HOST}Expect: 100-continue\r\nExpect: 200-ok\r\n`),
      get(`${HOST}Expect: 200-ok\r\n`, 'HTTP/1.0'),
      get('Expect: 200-ok\r\n'),
      preflight,
    ];
    for (const bytes of requests) {
      assertRefused(
        await exchange(listener.port, bytes),
        417,
        'expectation_failed',
        'The expectation of the request cannot be met',
      );
      assert.equal(listener.logs.at(-1)?.reason, 'expectation_failed');
    }
    const [response] = responsesIn(
      await exchange(listener.port, get(`${HOST}Expect: 200-ok\r\nOrigin: ${ORIGIN}\r\n`)),
    );
    assert.deepEqual([response?.status, response?.fields.get('access-control-allow-origin')], [417, ORIGIN]);
    await listener.gone();
  });

  test('does not time out a partly read request while reading is paused because responses are unread [docs/logs-and-metrics.md]', async (t) => {
    const { port, server } = await openListener(t);
    const connected = once(server, 'connection') as Promise<[Socket]>;
    const socket = connect(port, '127.0.0.1').pause();
    const [accepted] = await connected;
    const count = 20_000;
    socket.write(GOOD.repeat(count - 1) + LAST);
    while (!accepted.isPaused()) await new Promise(setImmediate);

    // Node's error for a partly read request.
    const late = Object.assign(new Error(), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
    server.emit('clientError', late, accepted);
    let received = '';
    socket.setEncoding('latin1').on('data', (piece) => {
      received += piece;
    });
    socket.resume();
    await once(socket, 'close');
    assert.equal(received.split('HTTP/1.1 200 ').length - 1, count);
  });

  test('sends Vary: Origin even in response to malformed HTTP, once origins are set [docs/how-a-request-is-checked.md]', async (t) => {
    const { port } = await openListener(t);
    const plain = await openListener(t, { environment: {} });
    for (const bytes of [GARBAGE, CONNECT, get(''), get(`${HOST}Expect: 200-ok\r\n`)]) {
      assert.equal(responsesIn(await exchange(port, bytes))[0]?.fields.get('vary'), 'Origin', bytes);
      assert.equal(responsesIn(await exchange(plain.port, bytes))[0]?.fields.get('vary'), undefined, bytes);
    }
  });

  for (const expectation of ['100-continue', '100-Continue']) {
    test(`answers at once, without 100, a request that expects ${expectation} [RFC 9110 §10.1.1]`, async (t) => {
      t.mock.timers.enable({ apis: ['setTimeout'] });
      const { port } = await openListener(t);
      const wire = await openWire(port);
      wire.send(post(`Content-Length: 5\r\nExpect: ${expectation}\r\n`));
      await wire.until((text) => text.endsWith('}'));
      wire.send('hello');
      const [response, ...others] = responsesIn(await wire.untilClosed());
      assert.deepEqual([response?.status, response?.fields.get('connection'), others], [405, 'close', []]);
    });
  }

  test('ignores an offer to upgrade [RFC 9110 §7.8], and closes, since Node reads nothing more', async (t) => {
    const listener = await openListener(t);
    for (const offer of ['websocket', 'h2c', 'TLS/1.2']) {
      const received = await exchange(
        listener.port,
        get(`${HOST}Connection: Upgrade\r\nUpgrade: ${offer}\r\n`) + LAST,
      );
      assert.deepEqual(
        responsesIn(received).map(({ status, fields }) => [status, fields.get('connection')]),
        [[200, 'close']],
      );
    }
    await listener.gone();
  });

  test('refuses header fields of more than 16 KiB [RFC 6585 §5, C3]', async (t) => {
    const listener = await openListener(t);
    assert.equal(Reflect.get(listener.server, 'maxHeaderSize'), 16_384);
    const withField = (length: number) => get(`${HOST}Connection: close\r\nX: ${'x'.repeat(length)}\r\n`);
    assert.deepEqual(statusesIn(await exchange(listener.port, withField(16_000))), [200]);
    const tooLarge = [
      withField(16_384),
      get(`${HOST}${'x'.repeat(16_384)}: a\r\n`),
      `GET /${'x'.repeat(16_384)} HTTP/1.1\r\n${HOST}\r\n`,
    ];
    for (const bytes of tooLarge) {
      assertRefused(await exchange(listener.port, bytes), 431, 'header_fields_too_large', TOO_LARGE);
    }
    assert.equal(listener.logs.at(-1)?.reason, 'header_fields_too_large');
    await listener.gone();
  });

  test('accepts 200 header fields and refuses more, without dropping any [RFC 6585 §5, G5]', async (t) => {
    const { port, logs } = await openListener(t);
    const asked = `GET /api/private HTTP/1.1\r\n${HOST}Connection: close\r\nAuthorization: Bearer a\r\n`;
    const ask = (count: number, more = '') => exchange(port, `${asked}${'x:\r\n'.repeat(count)}${more}\r\n`);
    assert.deepEqual([statusesIn(await ask(197)), logs.at(-1)?.reason], [[401], 'token-malformed']);
    const repeated = 'Authorization: Bearer b\r\n';
    assert.deepEqual(
      [statusesIn(await ask(196, repeated)), logs.at(-1)?.reason],
      [[400], 'authorization-repeated'],
    );
    for (const count of [198, 1_000, 2_500, 3_900]) {
      assertRefused(await ask(count), 431, 'header_fields_too_large', TOO_LARGE);
      assert.equal(logs.at(-1)?.reason, 'header_fields_too_large');
    }
  });

  test('times out when header fields do not arrive [RFC 9110 §15.5.9, G8]', async (t) => {
    const prepare = (server: Server) =>
      void Object.assign(server, { headersTimeout: 1, connectionsCheckingInterval: 10 });

    const listener = await openListener(t, { prepare });
    for (const begun of ['GET', 'GET /healthz HTTP/1.1\r\nHos', `GET /healthz HTTP/1.1\r\n${HOST}`]) {
      assertRefused(
        await exchange(listener.port, begun),
        408,
        'request_timeout',
        'The request did not arrive in time',
      );
      assert.equal(listener.logs.at(-1)?.reason, 'request_timeout');
    }
    await listener.gone();
  });

  test('stops reading requests from a client that does not read its responses [G8]', async (t) => {
    const listener = await openListener(t);
    let taken = 0;
    listener.server.on('request', () => {
      taken += 1;
    });
    const accepted = once(listener.server, 'connection') as Promise<[Socket]>;
    const client = connect(listener.port, '127.0.0.1').pause();
    const [socket] = await accepted;
    client.write(get(HOST).repeat(200_000));
    while (socket.writableLength === 0) await new Promise(setImmediate);
    for (let turn = 0; turn < 1_000; turn += 1) await new Promise(setImmediate);
    // The buffers of two sockets hold some ten thousand responses.
    assert.ok(taken < 100_000, `${taken} requests`);
    client.destroy();
    await listener.gone();
  });

  test('serves what its clients sent while the process was stopped, for minutes or an hour, and then times them as before', async (t) => {
    for (const seconds of [6, 100, 3_600]) {
      const listener = await openListener(t);
      const wires = [await openUsedWire(listener.port), await openWire(listener.port)];
      while (listener.sockets.length < wires.length) await new Promise(setImmediate);
      listener.pass(60);
      await new Promise(setImmediate);
      // It is in the buffers of the system when the timers find that they are late.
      for (const wire of wires) wire.send(GOOD);
      listener.clock.advance(seconds * 1_000);
      // As Node says of a connection that has been open for long without a request.
      const late = Object.assign(new Error(), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
      listener.server.emit('clientError', late, listener.sockets[1]);
      for (const [index, wire] of wires.entries()) {
        const count = 2 - index;
        await wire.until((text) => statusesIn(text).length === count && text.endsWith('}'));
      }

      for (let turn = 0; turn < 2; turn += 1) await new Promise(setImmediate);
      const wire = await openWire(listener.port);
      while (listener.sockets.length < 3) await new Promise(setImmediate);
      listener.server.emit('clientError', late, listener.sockets[2]);
      assert.deepEqual(statusesIn(await wire.untilClosed()), [408]);
      listener.pass(73);
      for (const [index, used] of wires.entries()) {
        assert.deepEqual(statusesIn(await used.untilClosed()), Array(2 - index).fill(200));
      }
    }
  });

  test('gives a part of a header ten seconds more if the process was stopped, and a client that sends nothing its usual time', async (t) => {
    const listener = await openListener(t);
    const wires = [await openWire(listener.port), await openWire(listener.port)];
    while (listener.sockets.length < wires.length) await new Promise(setImmediate);
    const [begun, silent] = listener.sockets;
    wires[0]!.send('GET / HTTP/1.1\r\nHost: ');
    while (begun?.bytesRead === 0) await new Promise(setImmediate);
    listener.clock.advance(20_000);
    const late = Object.assign(new Error(), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
    for (const socket of listener.sockets) listener.server.emit('clientError', late, socket);
    listener.pass(9);
    assert.deepEqual([begun?.writableEnded, silent?.writableEnded], [false, false]);
    listener.pass(1);
    assert.deepEqual([begun?.writableEnded, silent?.writableEnded], [true, false]);
    assert.deepEqual(statusesIn(await wires[0]!.untilClosed()), [408]);
  });

  test('takes itself for stopped if it has read nothing for more than five seconds, and not before', async (t) => {
    for (const [millis, isRefused] of [
      [5_000, true],
      [5_001, false],
    ] as const) {
      const listener = await openListener(t);
      const wire = await openWire(listener.port);
      wire.send('GET / HTTP/1.1\r\nHost: ');
      while (!listener.sockets[0]?.bytesRead) await new Promise(setImmediate);
      listener.clock.advance(millis);
      const late = Object.assign(new Error(), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
      listener.server.emit('clientError', late, listener.sockets[0]);
      assert.equal(listener.sockets[0]?.writableEnded, isRefused);
    }
  });

  test('times clients by the clock, however late a busy process looks at them [RFC 9112 §9.3]', async (t) => {
    const listener = await openListener(t);
    await openUsedWire(listener.port);
    for (let looks = 0; looks < 18; looks += 1) listener.clock.advance(4_000);
    assert.equal(listener.sockets[0]?.destroyed, false);
    listener.clock.advance(4_000);
    assert.equal(listener.sockets[0]?.destroyed, true);
    await listener.gone();
  });

  test('does not count the time for which the process was stopped against a client that reads', async (t) => {
    const listener = await openListener(t);
    const { port, server } = listener;
    const connected = once(server, 'connection') as Promise<[Socket]>;
    const socket = connect(port, '127.0.0.1').pause();
    const [accepted] = await connected;
    const count = 20_000;
    socket.write(GOOD.repeat(count - 1) + LAST);
    while (!accepted.isPaused()) await new Promise(setImmediate);
    listener.pass(2);
    listener.clock.advance(100_000);
    let received = '';
    socket.setEncoding('latin1').on('data', (piece) => {
      received += piece;
    });
    socket.resume();
    await once(socket, 'close');
    assert.equal(received.split('HTTP/1.1 200 ').length - 1, count);
  });

  test('ends a connection 72 seconds after its last response, whatever bytes arrive [RFC 9112 §9.3, G8, G14]', async (t) => {
    const listener = await openListener(t);
    const wires = [await openUsedWire(listener.port), await openUsedWire(listener.port)];
    const [quiet, dripping] = listener.sockets;
    // A socket timer would restart with every byte.
    assert.deepEqual([quiet?.timeout, dripping?.timeout], [undefined, undefined]);

    const drip = async () => {
      const { bytesRead } = dripping!;
      // No part of a request: RFC 9112 §2.2 ignores empty lines before one.
      wires[1]!.send('\r\n');
      while (dripping!.bytesRead === bytesRead && !dripping!.destroyed) await new Promise(setImmediate);
    };

    for (let second = 0; second < 72; second += 12) {
      await drip();
      listener.pass(12);
    }
    assert.deepEqual([quiet?.destroyed, dripping?.destroyed], [false, false]);
    await drip();
    listener.pass(1);
    assert.deepEqual([quiet?.destroyed, dripping?.destroyed], [true, true]);
    await listener.gone();
  });

  test('gives a client that does not read 90 seconds, whatever bytes it sends [G8, G14]', async (t) => {
    const listener = await openListener(t);
    const accepted = once(listener.server, 'connection') as Promise<[Socket]>;
    const client = connect(listener.port, '127.0.0.1').pause();
    const [socket] = await accepted;
    // More responses than the buffers of two sockets hold.
    client.write(get(HOST).repeat(60_000));
    while (socket.writableLength === 0) await new Promise(setImmediate);
    for (let second = 0; second < 90; second += 15) {
      client.write('\r\n');
      await new Promise(setImmediate);
      listener.pass(15);
    }
    assert.equal(socket.destroyed, false);
    listener.pass(1);
    assert.equal(socket.destroyed, true);
    client.destroy();
    await listener.gone();
  });

  test('cuts off a client that does not read after 90 seconds, even if the rest of its request is late all the while [G14]', async (t) => {
    const clock = new TestClock();
    const { options } = makeIssuer();
    const values = readServiceOptions({ ...options, host: '127.0.0.1', port: 0 });
    // Longer than the buffers of two sockets.
    const text = 'x'.repeat(32 * 1024 * 1024);
    const service = createListeningService({ routes: [put('/', open, () => ({ text }))] }, values, {
      ...OWN_ROUTES,
      clock,
    });
    const { port } = await service.listen();
    t.after(() => service.close());
    const client = connect(port, '127.0.0.1');
    client.write('PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n');
    await once(client, 'readable');
    for (let second = 0; second <= 90; second += 1) clock.advance(1_000);
    let received = 0;
    client.on('data', ({ length }) => {
      received += length;
    });
    client.on('error', () => {});
    await once(client, 'close');
    assert.ok(received < text.length, String(received));
    const stopped = service.stop();
    while (!clock.pending.includes(10_000)) await new Promise(setImmediate);
    clock.advance(10_000);
    await stopped;
  });

  test('has the documented limits [docs/logs-and-metrics.md]', async (t) => {
    const { server } = await openListener(t);
    const limits = {
      headersTimeout: 10_000,
      requestTimeout: 15_000,
      keepAliveTimeout: 72_000,
      connectionsCheckingInterval: 1_000,
      maxRequestsPerSocket: 0,
      maxHeadersCount: 201,
    };
    assert.deepEqual(
      Object.fromEntries(Object.keys(limits).map((name) => [name, Reflect.get(server, name)])),
      limits,
    );
  });

  test('gives its header no more time than a whole request, which Node would refuse', () => {
    const { server } = new Listener({} as never, new TestClock(), 5_000);
    assert.deepEqual([server.headersTimeout, server.requestTimeout], [5_000, 5_000]);
  });

  test('gives a request of a service the time of its options', async (t) => {
    const clock = new TestClock();
    const { options } = makeIssuer();
    const values = readServiceOptions({ ...options, host: '127.0.0.1', port: 0, requestTimeoutSeconds: 60 });
    const routes = [put('/', open, bytes(), () => ({}))];
    const service = createListeningService({ routes }, values, { ...OWN_ROUTES, clock });
    const { port } = await service.listen();
    t.after(() => service.close());
    const wire = await openWire(port);
    wire.send('PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n');
    await wire.until((text) => text.includes('100 Continue'));
    for (let second = 0; second < 60; second += 1) clock.advance(1_000);
    // What would have been sent has arrived when a later response has.
    await exchange(port, LAST);
    assert.ok(!(await wire.until(() => true)).includes(' 408 '));
    clock.advance(1_000);
    assert.match(await wire.untilClosed(), /\r\n\r\nHTTP\/1\.1 408 /);
    const stopped = service.stop();
    while (!clock.pending.includes(10_000)) await new Promise(setImmediate);
    clock.advance(10_000);
    await stopped;
  });
});
