/* Bodies that no route reads: answered at once, drained a little, never read (docs/how-a-request-is-checked.md, RFC 9112
   §9.6). */
import { strict as assert } from 'node:assert';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import type { Exchange } from '../../../src/service/request/exchange.ts';
import { Listener } from '../../../src/service/connection/listener.ts';
import { exchange, openWire } from '../../support/client.ts';
import { TestClock } from '../../support/clock.ts';
import { GOOD, HOST, LAST, openListener, post, PREFLIGHT } from '../../support/listener.ts';
import { responsesIn, statusesIn } from '../../support/raw-responses.ts';

describe('a request body', { timeout: 30_000 }, () => {
  const MEBIBYTE = 1024 * 1024;

  test('is not awaited by the response, and the connection then closes', async (t) => {
    const listener = await openListener(t);
    const preflight = `OPTIONS /healthz HTTP/1.1\r\n${HOST}${PREFLIGHT}Content-Length: 5\r\n\r\n`;
    const cases: [string, string, number][] = [
      [`GET /healthz HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\n`, 'hello', 200],
      [`GET /healthz HTTP/1.1\r\n${HOST}Content-Length: 05\r\n\r\n`, 'hello', 200],
      [`HEAD /healthz HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\n`, 'hello', 200],
      [post('Content-Length: 5\r\n'), 'hello', 405],
      [post('Transfer-Encoding: chunked\r\n'), '5\r\nhello\r\n0\r\n\r\n', 405],
      // RFC 9112 §7: case-insensitive.
      [post('Transfer-Encoding: Chunked\r\n'), '5\r\nhello\r\n0\r\n\r\n', 405],
      [`GET /api/private HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\n`, 'hello', 401],
      [`GET /nowhere HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\n`, 'hello', 404],
      [preflight, 'hello', 204],
    ];
    for (const [head, body, status] of cases) {
      const wire = await openWire(listener.port);
      wire.send(head);
      const received = await wire.until(
        (text) => text.endsWith('}') || /^(?:HTTP\/1.1 204|(?!.*\{))[^]*\r\n\r\n$/.test(text),
      );
      assert.match(received, new RegExp(`^HTTP/1\\.1 ${status} [^]*\\r\\nConnection: close\\r\\n`));
      wire.send(body);
      assert.equal(await wire.untilClosed(), received);
    }
    await listener.gone();
  });

  test('of Content-Length 0, or without a length, keeps the connection', async (t) => {
    const { port } = await openListener(t);
    assert.deepEqual(
      statusesIn(
        await exchange(
          port,
          post('Content-Length: 0\r\n') + post('Content-Length: 00\r\n') + post('') + LAST,
        ),
      ),
      [405, 405, 405, 200],
    );
  });

  test('that is unread ends the connection without waiting, even if it has arrived or is only the last chunk', async (t) => {
    const listener = await openListener(t);
    const chunked = post('Transfer-Encoding: chunked\r\n');
    for (const [head, body] of [
      [post('Content-Length: 5\r\n'), 'hello'],
      [chunked, '5\r\nhello\r\n0\r\n\r\n'],
      [chunked, '0\r\n\r\n'],
    ] as const) {
      assert.deepEqual(statusesIn(await exchange(listener.port, head + body)), [405]);
      const wire = await openWire(listener.port);
      wire.send(head);
      await wire.until((text) => text.endsWith('}'));
      wire.send(body);
      assert.deepEqual(statusesIn(await wire.untilClosed()), [405]);
    }
    await listener.gone();
  });

  test('is not read from a request without one', async (t) => {
    const listener = await openListener(t);
    const asked: IncomingMessage[] = [];
    listener.server.on('request', (request) => asked.push(request));
    assert.deepEqual(
      statusesIn(await exchange(listener.port, GOOD + post('Content-Length: 0\r\n') + LAST)),
      [200, 405, 200],
    );
    assert.deepEqual(
      asked.map((request) => [request.complete, request.readableFlowing]),
      [
        [true, null],
        [true, null],
        [true, null],
      ],
    );
  });

  test('that a handler does not read does not delay the next request', async (t) => {
    const responseWhenFull = (request: IncomingMessage, response: ServerResponse): void => {
      const isFull = request.complete || request.socket.isPaused();
      setImmediate(() => (isFull ? response.end('{}') : responseWhenFull(request, response)));
    };

    const { server } = new Listener(
      {
        startTiming: () => 0,
        respond: ({ request, response }: Exchange) => responseWhenFull(request, response),
        refuseConnection: () => assert.fail(),
      } as never,
      new TestClock(),
      15_000,
    );
    t.after(() => server.close());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const wire = await openWire((server.address() as AddressInfo).port);
    wire.send(post(`Content-Length: ${MEBIBYTE}\r\n`));
    wire.send(Buffer.alloc(MEBIBYTE));
    wire.send(LAST);
    assert.deepEqual(statusesIn(await wire.untilClosed()), [200, 200]);
  });

  test('is drained up to one mebibyte and no further', async (t) => {
    const listener = await openListener(t);
    const wire = await openWire(listener.port);
    wire.send(post('Content-Length: 5000000\r\n'));
    await wire.until((text) => text.endsWith('}'));
    wire.send(Buffer.alloc(5_000_000));
    const [socket] = listener.sockets;
    while (!socket!.isPaused() && !socket!.destroyed) await new Promise(setImmediate);
    for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
    const { bytesRead } = socket!;
    assert.ok(bytesRead > MEBIBYTE && bytesRead < 1.2 * MEBIBYTE, `${bytesRead} bytes`);
    listener.pass(2);
    assert.deepEqual(statusesIn(await wire.untilClosed()), [405]);
    await listener.gone();
  });

  test('of 5 MB that keeps arriving does not lose the response', async (t) => {
    const listener = await openListener(t);
    const received = await exchange(
      listener.port,
      Buffer.concat([Buffer.from(post('Content-Length: 5000000\r\n')), Buffer.alloc(5_000_000)]),
    );
    const [answer, ...others] = responsesIn(received);
    assert.deepEqual(
      [answer?.status, answer?.text, others],
      [405, '{"error":"method_not_allowed","message":"This method is not supported here"}', []],
    );
    listener.pass(2);
    await listener.gone();
  });

  test('of endless chunks is cut off', async (t) => {
    const listener = await openListener(t);
    const wire = await openWire(listener.port);
    const chunk = Buffer.concat([Buffer.from('10000\r\n'), Buffer.alloc(0x10000), Buffer.from('\r\n')]);

    const pour = () => {
      if (wire.socket.writable) wire.socket.write(chunk, pour);
    };

    wire.send(post('Transfer-Encoding: chunked\r\n'));
    pour();
    await wire.until((text) => text.endsWith('}'));
    listener.pass(2);
    assert.deepEqual(statusesIn(await wire.untilClosed()), [405]);
    await listener.gone();
  });

  test('with broken chunks ends the connection with the one response', async (t) => {
    const listener = await openListener(t);
    const wire = await openWire(listener.port);
    wire.send(post('Transfer-Encoding: chunked\r\n', '5\r\nhello\r\n'));
    await wire.until((text) => text.endsWith('}'));
    wire.send('broken\r\n');
    assert.deepEqual(statusesIn(await wire.untilClosed()), [405]);
    await listener.gone();
  });
});
