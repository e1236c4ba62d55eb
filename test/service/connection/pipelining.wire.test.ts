/* Several requests on one connection, with garbage among them, and clients that close their side before they
   have read. */
import { strict as assert } from 'node:assert';
import { once } from 'node:events';
import { describe, test, type TestContext } from 'node:test';
import { open } from '../../../src/gate/rules/access.ts';
import { del, get as getRoute, post as postRoute } from '../../../src/service/routes/route.ts';
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
} from '../../support/listener.ts';
import { assertRefused, MALFORMED, statusesIn } from '../../support/raw-responses.ts';
import { startRoutes } from '../../support/routes.ts';

/** 34 bytes; 1,925 of them fill one read. */
const SHORT = 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n';

/** Like `exchange`, for a client that closes its side at once. */
async function exchangeAndClose(port: number, bytes: string): Promise<string> {
  const wire = await openWire(port);
  wire.socket.end(bytes);
  return wire.untilClosed();
}

const BEHIND = `POST /behind HTTP/1.1\r\n${HOST}\r\n`;

/** A body of one chunk, which comes some turns after it is asked for. */
async function* afterTurns(before: () => void) {
  for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
  before();
  yield Buffer.from('chunk');
}

/** Routes that count the runs of `BEHIND`, and answer `/held` when told to. */
async function openCounting(t: TestContext) {
  const counted = { runs: 0, response: () => {} };
  const held = new Promise<object>((resolve) => {
    counted.response = () => resolve({});
  });
  const app = await startRoutes({
    routes: [
      getRoute('/held', open, () => held),
      postRoute('/first', open, () => ({})),
      getRoute('/json', open, () => ({})),
      del('/none', open, () => {}),
      del('/null', open, () => new Response(null, { status: 204 })),
      getRoute('/text', open, () => new Response('text')),
      getRoute('/events', open, () => new Response('', { headers: { 'Content-Type': 'text/event-stream' } })),
      getRoute('/stream', open, () => new Response(afterTurns(() => {}))),
      getRoute(
        '/fails',
        open,
        () =>
          new Response(
            afterTurns(() => {
              throw new Error('inside');
            }),
          ),
      ),
      postRoute('/later', open, async () => ({})),
      postRoute('/behind', open, () => {
        counted.runs += 1;
        return {};
      }),
    ],
  });
  t.after(app.stop);
  return Object.assign(counted, { app });
}

/** To HTTP/1.0, with the keep-alive of its day, and `BEHIND` in the same piece. */
const oldRequests = (method: string, path: string) =>
  [`${method} ${path}`, 'POST /behind']
    .map((line) => `${line} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n`)
    .join('');

const first = (fields: string, version = '1.1', path = '/first') =>
  `POST ${path} HTTP/${version}\r\n${HOST}${fields}\r\n`;

describe('a request behind a response that ends the connection', { timeout: 120_000 }, () => {
  for (const [what, request, status] of [
    [
      'HTTP/1.0 with a transfer coding',
      `${first('Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n', '1.0')}0\r\n\r\n`,
      400,
    ],
    ['a coding that is not understood', `${first('Transfer-Encoding: gzip, chunked\r\n')}0\r\n\r\n`, 400],
    ['another version of HTTP', first('Connection: keep-alive\r\n', '2.0'), 400],
    ['two Hosts', first(HOST), 400],
    ['another expectation', first('Expect: x\r\n'), 417],
    ['an offer to upgrade', first('Upgrade: x\r\n'), 200],
    ['an unread body', `${first('Content-Length: 5\r\n')}hello`, 200],
  ] as const) {
    test(`is not run after the response to ${what} [RFC 9112 §9.6, G8]`, async (t) => {
      const counted = await openCounting(t);
      assert.deepEqual(statusesIn(await exchange(counted.app.port, request + BEHIND)), [status]);
      assert.equal(counted.runs, 0);
    });
  }

  for (const [what, request, status] of [
    ['known at once', first(HOST), 400],
    ['computed later', `${first('Content-Length: 5\r\n', '1.1', '/later')}hello`, 200],
  ] as const) {
    test(`is not run while the response that ends the connection (${what}) waits for an earlier response [RFC 9112 §9.6, G8]`, async (t) => {
      const counted = await openCounting(t);
      const wire = await openWire(counted.app.port);
      let seen = 0;
      counted.app.server.on('request', () => {
        seen += 1;
      });

      wire.send(`GET /held HTTP/1.1\r\n${HOST}\r\n${request}`);
      while (seen < 2) await new Promise(setImmediate);
      // The request is processed at the end of the turn; asynchronous replies come in the next one.
      for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
      wire.send(BEHIND);
      assert.deepEqual(statusesIn(await exchange(counted.app.port, LAST)), [404]);
      assert.equal(seen, 3);
      counted.response();
      assert.deepEqual(statusesIn(await wire.untilClosed()), [200, status]);
      assert.equal(counted.runs, 0);
    });
  }
});

describe('a request of HTTP/1.0 behind another', { timeout: 120_000 }, () => {
  for (const [what, method, path, status] of [
    ['204', 'DELETE', '/none', 204],
    ['a Response without a body', 'DELETE', '/null', 204],
    ['a Response whose body ends at once', 'GET', '/text', 200],
    ['a Response for HEAD', 'HEAD', '/text', 200],
    ['an event stream', 'GET', '/events', 200],
    ['a stream that has no chunk yet', 'GET', '/stream', 200],
    ['a stream that fails before its first chunk', 'GET', '/fails', 500],
  ] as const) {
    test(`is not run if the response before it has no length, and so ends the connection: ${what} [RFC 9112 §6.3, §9.6, §10]`, async (t) => {
      const counted = await openCounting(t);
      const text = await exchange(counted.app.port, oldRequests(method, path));
      assert.deepEqual(text.match(/^HTTP\/1\.1 \d+|^Connection: .+$/gm), [
        `HTTP/1.1 ${status}`,
        'Connection: close',
      ]);
      assert.equal(counted.runs, 0);
    });
  }

  for (const [method, path] of [
    ['POST', '/first'],
    ['POST', '/later'],
    ['HEAD', '/json'],
  ] as const) {
    test(`is run, and gets its response, if the response before it has a length: ${method} ${path} [RFC 9112 §9.3]`, async (t) => {
      const counted = await openCounting(t);
      const wire = await openWire(counted.app.port);
      wire.send(oldRequests(method, path));
      const text = await wire.until((received) => /HTTP[^]*HTTP[^]*\r\n\r\n\{\}$/.test(received));
      wire.destroy();
      assert.deepEqual([text.match(/^Connection: keep-alive$/gim)?.length, counted.runs], [2, 1]);
    });
  }
});

describe('a connection with several requests', { timeout: 120_000 }, () => {
  test('answers a valid request before it refuses the garbage behind it', async (t) => {
    const { port } = await openListener(t);
    const received = await exchange(port, `${GOOD}${GARBAGE}`);
    assertRefused(received, 400, 'invalid_request', MALFORMED, 2);
    assert.deepEqual(statusesIn(received), [200, 400]);
  });

  test('refuses garbage on a connection that has been used', async (t) => {
    const { port } = await openListener(t);
    const wire = await openUsedWire(port);
    wire.send(GARBAGE);
    assertRefused(await wire.untilClosed(), 400, 'invalid_request', MALFORMED, 2);
  });

  test('holds back the refusal until the request before the garbage is answered', async (t) => {
    const listener = await openListener(t);
    const arrival = listener.held();
    const received = exchange(listener.port, `${HELD}${GARBAGE}`);
    (await arrival)();
    assert.deepEqual(statusesIn(await received), [200, 400]);
  });

  test('holds back the refusal of CONNECT until the request before it is answered [RFC 9112 §9.3.2]', async (t) => {
    const listener = await openListener(t);
    const arrival = listener.held();
    const received = exchange(listener.port, `${HELD}${CONNECT}`);
    const response = await arrival;
    await new Promise(setImmediate);
    response();
    assert.deepEqual(statusesIn(await received), [200, 400]);
  });

  test('survives a client that resets the connection behind CONNECT [RFC 9112 §9.3.2]', async (t) => {
    const listener = await openListener(t);
    const arrival = listener.held();
    const wire = await openWire(listener.port);
    wire.send(`${HELD}${CONNECT}`);
    const response = await arrival;
    await new Promise(setImmediate);
    wire.socket.resetAndDestroy();
    await listener.gone();
    response();
    assert.deepEqual(statusesIn(await exchange(listener.port, `${GOOD}${LAST}`)), [200, 200]);
  });

  test('answers every request that arrived completely before the client closed its side [RFC 9112 §9.6]', async (t) => {
    const { port } = await openListener(t);
    // As many as fit into one read, and more; the end of the stream arrives with the last.
    for (const count of [1, 63, 64, 1_925, 5_000]) {
      const received = await exchangeAndClose(port, SHORT.repeat(count));
      assert.equal(statusesIn(received).filter((status) => status === 200).length, count);
    }
  });

  test('answers waiting requests when the client closes its side, then ends the connection [RFC 9112 §9.6]', async (t) => {
    const listener = await openListener(t);
    for (const [behind, statuses] of [
      ['', [200]],
      [GOOD, [200, 200]],
      [GOOD.slice(0, 20), [200, 400]],
      [GARBAGE, [200, 400]],
      [post('Content-Length: 5\r\n', 'hel'), [200, 405]],
    ] as const) {
      const arrival = listener.held();
      const received = exchangeAndClose(listener.port, HELD + behind);
      const response = await arrival;
      const socket = listener.sockets.at(-1)!;
      while (!socket.isPaused() && !socket.readableEnded) await new Promise(setImmediate);
      response();
      assert.deepEqual(statusesIn(await received), statuses);
      await listener.gone();
    }
  });

  test('ends an idle connection when the client closes its side', async (t) => {
    const listener = await openListener(t);
    const wire = await openUsedWire(listener.port);
    wire.socket.end();
    assert.deepEqual(statusesIn(await wire.untilClosed()), [200]);
    await listener.gone();
  });

  test('loses no response to a client that keeps sending after the last one [RFC 9112 §9.6]', async (t) => {
    const listener = await openListener(t);
    for (const last of [LAST, post('Content-Length: 5\r\n', 'hello'), GARBAGE]) {
      const received = await exchange(listener.port, SHORT.repeat(5_000) + last + SHORT.repeat(20_000));
      assert.equal(statusesIn(received).length, 5_001, last);
      // Everything that it sends is read, to the end: a reset could overtake the responses.
      await listener.gone();
    }
  });

  test('runs no request behind the response that ends the connection', async (t) => {
    const listener = await openListener(t);
    const wire = await openWire(listener.port);
    wire.socket.allowHalfOpen = true;
    wire.send(post('Content-Length: 5\r\n', 'hello'));
    await wire.untilClosed();
    let seen = 0;
    listener.server.on('request', () => {
      seen += 1;
    });
    const [socket] = listener.sockets;
    const { bytesRead } = socket!;
    wire.send(GOOD);
    while (socket!.bytesRead === bytesRead && !socket!.destroyed) await new Promise(setImmediate);
    assert.deepEqual([seen, socket!.destroyed], [0, false]);
    wire.destroy();
  });

  for (const [what, request] of [
    ['nothing', GOOD],
    ['a body', post('Content-Length: 00\r\n')],
  ] as const) {
    test(`survives a connection that ends in the middle of many requests with ${what} [G8]`, async (t) => {
      const listener = await openListener(t);
      const pad = `X-Pad: ${'p'.repeat(800)}\r\n\r\n`;
      const padded = (text: string) => text.replace('\r\n\r\n', `\r\n${pad}`);
      // In some cases, the response that ends the connection is the last of a batch, and others are under
      // way.
      for (let before = 40; before < 64; before += 1) {
        const wire = await openWire(listener.port);
        wire.send(
          padded(GOOD).repeat(before) +
            padded(post('Content-Length: 5\r\n')) +
            'hello' +
            padded(request).repeat(76 - before),
        );
        wire.socket.end(padded(request).repeat(9));
        await wire.untilClosed();
      }
      await listener.gone();
      assert.deepEqual(statusesIn(await exchange(listener.port, GOOD + LAST)), [200, 200]);
    });
  }

  test('holds back the refusal until every request before the garbage is answered', async (t) => {
    const listener = await openListener(t);
    const arrival = listener.held();
    // The second response is ready at once, and waits behind the first.
    const received = exchange(listener.port, `${HELD}GET /nowhere HTTP/1.1\r\n${HOST}\r\n${GARBAGE}`);
    const response = await arrival;
    await new Promise(setImmediate);
    response();
    assert.deepEqual(statusesIn(await received), [200, 404, 400]);
  });

  test('refuses garbage even if so many responses wait that Node has stopped reading', async (t) => {
    const listener = await openListener(t);
    const arrival = listener.held();
    const refused = once(listener.server, 'clientError');
    const received = exchange(listener.port, `${HELD}${GOOD.repeat(1_000)}${GARBAGE}`);
    const response = await arrival;
    await refused;
    response();
    assert.equal(statusesIn(await received).join(), `${'200,'.repeat(1_001)}400`);
  });

  test('answers the in-flight request before it refuses garbage, even if an earlier request is already answered', async (t) => {
    const listener = await openListener(t);
    const wire = await openWire(listener.port);
    const responses: (() => void)[] = [];
    for (let count = 0; count < 2; count += 1) {
      const arrival = listener.held();
      wire.send(HELD);
      responses.push(await arrival);
    }
    responses[0]!();
    await wire.until((text) => text.endsWith('}'));
    const broken = once(listener.server, 'clientError');
    wire.send(GARBAGE);
    await broken;
    responses[1]!();
    assert.deepEqual(statusesIn(await wire.untilClosed()), [200, 200, 400]);
  });

  test('refuses garbage once, however much arrives, and reads nothing after it', async (t) => {
    const listener = await openListener(t);
    const arrival = listener.held();
    const wire = await openWire(listener.port);
    wire.send(HELD);
    const response = await arrival;
    const refused = once(listener.server, 'clientError');
    wire.send(GARBAGE);
    await refused;
    const [socket] = listener.sockets;
    const { bytesRead } = socket!;
    for (let count = 0; count < 12; count += 1) {
      wire.send(GARBAGE);
      // On another connection, which gives this one time to be read.
      assert.deepEqual(statusesIn(await exchange(listener.port, LAST)), [200]);
    }
    assert.equal(socket!.bytesRead, bytesRead);
    response();
    assert.deepEqual(statusesIn(await wire.untilClosed()), [200, 400]);
    assert.equal(listener.logs.filter(({ reason }) => reason === 'malformed-http').length, 1);
  });

  test('survives clients that leave in the middle', async (t) => {
    const listener = await openListener(t);
    for (const bytes of ['', 'GET /heal', GOOD, post('Content-Length: 9\r\n', 'abc'), HELD]) {
      const wire = await openWire(listener.port);
      const arrival = bytes === HELD ? listener.held() : undefined;
      wire.send(bytes);
      await arrival;
      wire.socket.resetAndDestroy();
    }
    await listener.gone();
    assert.deepEqual(statusesIn(await exchange(listener.port, LAST)), [200]);
  });

  for (const [what, bytes] of Object.entries({
    garbage: GARBAGE,
    CONNECT: CONNECT,
    'a body': post('Content-Length: 9\r\n'),
  })) {
    test(`gives a client whose last request is ${what} a second to read before the connection closes`, async (t) => {
      const listener = await openListener(t);
      const wire = await openWire(listener.port);
      wire.socket.allowHalfOpen = true;
      wire.send(bytes);
      assert.equal(statusesIn(await wire.untilClosed()).length, 1);
      const [socket] = listener.sockets;
      listener.pass(1);
      assert.equal(socket!.destroyed, false);
      listener.pass(1);
      assert.equal(socket!.destroyed, true);
      wire.destroy();
    });
  }

  test('ends at once when a refused client closes its side', async (t) => {
    const listener = await openListener(t);
    for (const bytes of [GARBAGE, `CONNECT api.test:443 HTTP/1.1\r\n${HOST}\r\n and more`]) {
      assert.deepEqual(statusesIn(await exchange(listener.port, bytes)), [400]);
      await listener.gone();
    }
  });
});
