/* What is read from a connection while a response waits: nothing behind one that ends the connection,
   otherwise a bounded amount (docs/logs-and-metrics.md). */
import { strict as assert } from 'node:assert';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, test, type TestContext } from 'node:test';
import { pauseReading, resumeReading } from '../../../src/service/connection/connection.ts';
import { authenticated, open } from '../../../src/gate/rules/access.ts';
import { get, post } from '../../../src/service/routes/route.ts';
import { json } from '../../../src/service/routes/inputs.ts';
import { clock, tokenWith } from '../../support/caller.ts';
import { exchange, openWire } from '../../support/client.ts';
import { statusesIn } from '../../support/raw-responses.ts';
import { startRoutes } from '../../support/routes.ts';

const HOST = 'Host: a\r\n';
const HELD = `GET /held HTTP/1.1\r\n${HOST}\r\n`;
const NOW = `GET /now HTTP/1.1\r\n${HOST}\r\n`;
const LAST = `GET /now HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`;

const line = (start: string, fields = '', body = '') => `${start} HTTP/1.1\r\n${HOST}${fields}\r\n${body}`;

const jsonOf = (path: string, length: number, fields = '') =>
  line(
    `POST ${path}`,
    `${fields}Content-Type: application/json\r\nContent-Length: ${length}\r\n`,
    `"${'x'.repeat(length - 2)}"`,
  );

/** The size of one read by Node. */
const PIECE = 64 * 1024;

/**
 * Routes: requests to `/held` wait until `answer` is called, and so does the sender check of guarded routes.
 */
async function openHolding(context: TestContext) {
  const count = { seen: 0, ran: 0 };
  let response = () => {};

  const held = new Promise<object>((resolve) => {
    response = () => resolve({});
  });

  const hold = () => {
    count.ran += 1;
    return held;
  };

  const app = await startRoutes({
    routes: [
      get('/held', open, hold),
      get('/now', open, () => ({})),
      get('/soon', open, async () => {
        for (let turn = 0; turn < 40; turn += 1) await new Promise(setImmediate);
        return {};
      }),
      post('/json', open, json(), () => ({})),
      post('/held-json', open, json(), hold),
      post('/guarded', authenticated, () => ({})),
      post('/guarded-json', authenticated, json(), () => ({})),
    ],
    sender:
      (usual) =>
      (...checked) =>
        held.then(() => usual(...checked)),
  });
  context.after(() => app.stop());
  app.server.on('request', () => {
    count.seen += 1;
  });
  const accepted = once(app.server, 'connection');
  const wire = await openWire(app.port);
  context.after(wire.destroy);
  const [socket] = (await accepted) as [Socket];

  /** Some turns for the service to run. */
  const others = async () => {
    for (let round = 0; round < 3; round += 1) {
      assert.deepEqual(statusesIn(await exchange(app.port, LAST)), [200]);
    }
  };

  /** Waits until reading stops. */
  const settled = async () => {
    let bytesRead: number;
    do {
      ({ bytesRead } = socket);
      await others();
    } while (socket.bytesRead > bytesRead);
    return bytesRead;
  };

  return { ...app, wire, socket, count, response, settled };
}

const fields = 'X: 1\r\n'.repeat(250);

const ENDINGS: Readonly<Record<string, readonly [bytes: string, status: number]>> = {
  'an unread body': [line('POST /nowhere', 'Content-Length: 5\r\n', 'hello'), 404],
  'an unread chunked body': [line('GET /now', 'Transfer-Encoding: chunked\r\n'), 200],
  'a body for another method': [line('POST /now', 'Content-Length: 5\r\n', 'hello'), 405],
  'a body that is too large': [
    line('POST /json', 'Content-Type: application/json\r\nContent-Length: 9999999999\r\n'),
    413,
  ],
  'another expectation': [line('GET /now', 'Expect: x\r\n'), 417],
  'an offer to upgrade': [line('GET /now', 'Connection: upgrade\r\nUpgrade: x\r\n'), 200],
  CONNECT: [line('CONNECT a:443'), 400],
  'two Hosts': [line('GET /now', HOST), 400],
  'too many fields': [line('GET /now', fields), 431],
  'a field that is too long': [line('GET /now', `X: ${'x'.repeat(20_000)}\r\n`), 431],
  'bytes that are no request': ['garbage\r\n\r\n', 400],
  'a coding that is not understood': [line('POST /json', 'Transfer-Encoding: gzip, chunked\r\n'), 400],
  'HTTP/1.0': [`GET /now HTTP/1.0\r\n${HOST}\r\n`, 200],
  'Connection: close': [LAST, 200],
};

describe('behind a request whose response ends the connection', { timeout: 60_000 }, () => {
  for (const [what, [ending, status]] of Object.entries(ENDINGS)) {
    test(`nothing more is read, and every earlier request is answered: ${what} [RFC 9112 §9.6]`, async (t) => {
      const { wire, socket, count, response, settled } = await openHolding(t);
      wire.send(NOW + HELD + ending);
      const before = await settled();
      // From the following bytes Node learns that the request that asked to close is not the last; or they
      // fill a body.
      wire.send(NOW.repeat(100_000));
      assert.ok((await settled()) <= before + 2 * PIECE);
      assert.ok(count.seen < 5_000);
      response();
      assert.deepEqual(statusesIn(await wire.untilClosed()), [200, 200, status]);
      // The client has a second to close, and sweeps come every second.
      const closed = once(socket, 'close');
      for (let second = 0; second < 2; second += 1) clock.advance(1_000);
      await closed;
    });

    test(`every earlier request is answered, even if all requests arrive in one piece: ${what} [RFC 9112 §9.3.2]`, async (t) => {
      const { wire, response, settled } = await openHolding(t);
      wire.send(NOW + HELD + NOW + ending + NOW.repeat(10_000));
      await settled();
      response();
      assert.deepEqual(statusesIn(await wire.untilClosed()), [200, 200, 200, status]);
    });
  }

  test('reading stops once its unread body has arrived, even while the caller is still being checked', async (t) => {
    const { wire, count, response, settled } = await openHolding(t);
    const fieldsOf = `Authorization: Bearer ${tokenWith()}\r\nContent-Length: 5\r\n`;
    wire.send(line('POST /guarded', fieldsOf, 'hello'));
    const before = await settled();
    wire.send(HELD.repeat(100_000));
    assert.ok((await settled()) <= before + 3 * PIECE);
    assert.ok(count.seen < 10_000);
    response();
    assert.deepEqual(statusesIn(await wire.untilClosed()), [200]);
  });
});

describe('behind a request that waits', { timeout: 60_000 }, () => {
  test('a limited amount is read, and the rest once that request is answered', async (t) => {
    const { wire, socket, count, response, settled } = await openHolding(t);
    const total = 20_000;
    wire.send(HELD.repeat(total));
    assert.ok((await settled()) <= 4 * PIECE);
    assert.ok(count.ran < 8_000, `${count.ran} handlers run`);
    response();
    // Looks at the long text once all handlers have run.
    await wire.until((text) => count.ran === total && text.split('HTTP/1.1 200').length > total);
    wire.send(HELD.repeat(total) + LAST);
    const statuses = statusesIn(await wire.untilClosed());
    // Of two long lists, what `deepEqual` says takes minutes and gigabytes.
    assert.equal(statuses.length, 2 * total + 1);
    assert.ok(statuses.every((status) => status === 200));
    assert.equal(count.ran, 2 * total);
    assert.equal(socket.bytesRead, HELD.length * 2 * total + LAST.length);
  });

  for (const [what, path, length, token] of [
    ['a check of the caller', '/guarded-json', 10_000, () => `Authorization: Bearer ${tokenWith()}\r\n`],
    ['a handler', '/held-json', 100_000, () => ''],
  ] as const) {
    test(`at most one further body is read, and all requests are answered: ${what} [docs/logs-and-metrics.md]`, async (t) => {
      const { wire, response, settled } = await openHolding(t);
      const bodies = jsonOf(path, length, token()).repeat(100);
      wire.send(bodies + LAST);
      assert.ok((await settled()) <= 4 * PIECE + 100_000);
      response();
      assert.deepEqual(statusesIn(await wire.untilClosed()), Array(101).fill(200));
    });
  }

  test('the rest of a body is read once the requests before it are answered, however much was read ahead', async (t) => {
    const { wire, response, settled } = await openHolding(t);
    const small = jsonOf('/json', 30_000);
    const large = jsonOf('/json', 100_000);
    wire.send(HELD + small.repeat(5) + large + HELD + large.slice(0, -50_000));
    await settled();
    response();
    await wire.until((text) => statusesIn(text).length === 8);
    wire.send(large.slice(-50_000) + LAST);
    assert.deepEqual(statusesIn(await wire.untilClosed()), Array(10).fill(200));
  });

  test('a pending resume does not take effect after reading was stopped', async (t) => {
    const { wire, socket, settled } = await openHolding(t);
    wire.send(NOW);
    const before = await settled();
    socket.pause().resume();
    pauseReading(socket);
    wire.send(NOW);
    assert.equal(await settled(), before);
    resumeReading(socket);
    assert.deepEqual(statusesIn(await wire.until((text) => statusesIn(text).length === 2)), [200, 200]);
  });

  test('all requests are answered, however often we and Node stop and resume reading [RFC 9112 §9.3.2]', async (t) => {
    const { wire } = await openHolding(t);
    const mixed = line('GET /soon') + jsonOf('/json', 90_000) + NOW;
    wire.send(mixed.repeat(300) + LAST);
    assert.deepEqual(statusesIn(await wire.untilClosed()), Array(901).fill(200));
  });
});
