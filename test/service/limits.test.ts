/* What the listener decides about a request before its route does: expectations, upgrades, sizes and times (contract §3, §10). */
import { strict as assert } from 'node:assert';
import { once } from 'node:events';
import type { Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { exchange, openWire } from '../support/client.ts';
import { CONNECT, GARBAGE, get, HOST, LAST, openHouse, ORIGIN, post, PREFLIGHT } from '../support/house.ts';
import { answersIn, assertRefused, statusesIn } from '../support/raw-answers.ts';

const TOO_LARGE = 'The header fields of the request are too large';

describe('the listener', { timeout: 30_000 }, () => {
  test('refuses any other expectation than 100-continue, by the app like every request [RFC 9110 §10.1.1]', async (t) => {
    const house = await openHouse(t);
    const preflight = `OPTIONS /healthz HTTP/1.1\r\n${HOST}Expect: x\r\n${PREFLIGHT}\r\n`;
    const requests = [get(`${HOST}Expect: 200-ok\r\n`), get('Expect: 200-ok\r\n'), preflight];
    for (const bytes of requests) {
      assertRefused(
        await exchange(house.port, bytes),
        417,
        'expectation_failed',
        'The expectation of the request cannot be met',
      );
      assert.equal(house.logs.at(-1)?.reason, 'expectation_failed');
    }
    const [answer] = answersIn(
      await exchange(house.port, get(`${HOST}Expect: 200-ok\r\nOrigin: ${ORIGIN}\r\n`)),
    );
    assert.deepEqual([answer?.status, answer?.fields.get('access-control-allow-origin')], [417, ORIGIN]);
    await house.gone();
  });

  test('says Vary: Origin also where no request was understood, once origins are set [contract §9]', async (t) => {
    const [{ port }, plain] = [await openHouse(t), await openHouse(t, { environment: {} })];
    for (const bytes of [GARBAGE, CONNECT, get(''), get(`${HOST}Expect: 200-ok\r\n`)]) {
      assert.equal(answersIn(await exchange(port, bytes))[0]?.fields.get('vary'), 'Origin', bytes);
      assert.equal(answersIn(await exchange(plain.port, bytes))[0]?.fields.get('vary'), undefined, bytes);
    }
  });

  test('answers at once, without 100, a request that expects 100-continue [RFC 9110 §10.1.1]', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { port } = await openHouse(t);
    const wire = await openWire(port);
    wire.send(post('Content-Length: 5\r\nExpect: 100-continue\r\n'));
    await wire.until((text) => text.endsWith('}'));
    wire.send('hello');
    const [answer, ...others] = answersIn(await wire.untilClosed());
    assert.deepEqual([answer?.status, answer?.fields.get('connection'), others], [405, 'close', []]);
  });

  test('ignores an offer to upgrade [RFC 9110 §7.8], and closes, since Node would read nothing more', async (t) => {
    const house = await openHouse(t);
    for (const offer of ['websocket', 'h2c', 'TLS/1.2']) {
      const received = await exchange(
        house.port,
        get(`${HOST}Connection: Upgrade\r\nUpgrade: ${offer}\r\n`) + LAST,
      );
      assert.deepEqual(
        answersIn(received).map(({ status, fields }) => [status, fields.get('connection')]),
        [[200, 'close']],
      );
    }
    await house.gone();
  });

  test('refuses header fields of more than 16 KiB [RFC 6585 §5, C3]', async (t) => {
    const house = await openHouse(t);
    assert.equal(Reflect.get(house.server, 'maxHeaderSize'), 16_384);
    const withField = (length: number) => get(`${HOST}Connection: close\r\nX: ${'x'.repeat(length)}\r\n`);
    assert.deepEqual(statusesIn(await exchange(house.port, withField(16_000))), [200]);
    const tooLarge = [
      withField(16_384),
      get(`${HOST}${'x'.repeat(16_384)}: a\r\n`),
      `GET /${'x'.repeat(16_384)} HTTP/1.1\r\n${HOST}\r\n`,
    ];
    for (const bytes of tooLarge)
      assertRefused(await exchange(house.port, bytes), 431, 'header_fields_too_large', TOO_LARGE);
    assert.equal(house.logs.at(-1)?.reason, 'header_fields_too_large');
    await house.gone();
  });

  test('looks at every header field, also after the 2,000th [G5]', async (t) => {
    const { port, logs } = await openHouse(t);
    const fields = `${HOST}Connection: close\r\nAuthorization: Bearer a\r\n${'x:\r\n'.repeat(2_500)}`;
    const ask = (more: string) => exchange(port, `GET /api/private HTTP/1.1\r\n${fields}${more}\r\n`);
    assert.deepEqual([statusesIn(await ask('')), logs.at(-1)?.reason], [[401], 'token-malformed']);
    assert.deepEqual(
      [statusesIn(await ask('Authorization: Bearer b\r\n')), logs.at(-1)?.reason],
      [[400], 'authorization-repeated'],
    );
  });

  test('times out a header that does not come [RFC 9110 §15.5.9, G8]', async (t) => {
    const prepare = (server: Server) =>
      void Object.assign(server, { headersTimeout: 1, connectionsCheckingInterval: 10 });
    const house = await openHouse(t, { prepare });
    for (const begun of ['GET', 'GET /healthz HTTP/1.1\r\nHos', `GET /healthz HTTP/1.1\r\n${HOST}`]) {
      assertRefused(
        await exchange(house.port, begun),
        408,
        'request_timeout',
        'The request did not arrive in time',
      );
      assert.equal(house.logs.at(-1)?.reason, 'request_timeout');
    }
    await house.gone();
  });

  test('takes no more requests from a client that does not read than their answers have room [G8]', async (t) => {
    const house = await openHouse(t);
    let taken = 0;
    house.server.on('request', () => {
      taken += 1;
    });
    const accepted = once(house.server, 'connection') as Promise<[Socket]>;
    const client = connect(house.port, '127.0.0.1').pause();
    const [socket] = await accepted;
    client.write(get(HOST).repeat(200_000));
    while (socket.writableLength === 0) await new Promise(setImmediate);
    for (let turn = 0; turn < 1_000; turn += 1) await new Promise(setImmediate);
    // The buffers of two sockets hold some ten thousand answers.
    assert.ok(taken < 100_000, `${taken} requests`);
    client.destroy();
    await house.gone();
  });

  test('gives a client that does not read 90 seconds without any progress, and others the time of keep-alive', async (t) => {
    const house = await openHouse(t);
    const accepted = once(house.server, 'connection') as Promise<[Socket]>;
    const client = connect(house.port, '127.0.0.1');
    const [socket] = await accepted;
    client.write(get(HOST));
    await once(client, 'data');
    assert.ok(socket.timeout === 72_000 || socket.timeout === 73_000, `${socket.timeout} ms`);
    client.pause();
    // More answers than the buffers of two sockets hold.
    client.write(get(HOST).repeat(60_000));
    while (socket.writableLength === 0) await new Promise(setImmediate);
    assert.equal(socket.timeout, 90_000);
    socket.emit('timeout');
    await once(socket, 'close');
    client.destroy();
    await house.gone();
  });

  test('has the limits of the contract [§10]', async (t) => {
    const { server } = await openHouse(t);
    const limits = {
      headersTimeout: 10_000,
      requestTimeout: 15_000,
      keepAliveTimeout: 72_000,
      connectionsCheckingInterval: 1_000,
      maxRequestsPerSocket: 0,
      maxHeadersCount: 0,
    };
    assert.deepEqual(
      Object.fromEntries(Object.keys(limits).map((name) => [name, Reflect.get(server, name)])),
      limits,
    );
  });
});
