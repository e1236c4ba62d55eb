/* A reply on the wire, and when it ends its connection. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { open } from '../../../src/gate/rules/access.ts';
import { reply } from '../../../src/service/routes/handler-reply.ts';
import { get } from '../../../src/service/routes/route.ts';
import { jsonReply, type Reply } from '../../../src/gate/replies/reply.ts';
import { RequestStream } from '../../../src/service/request/exchange.ts';
import { hangUp, writeReply } from '../../../src/service/request/responder.ts';
import { openWire } from '../../support/client.ts';
import { startRoutes } from '../../support/routes.ts';
import { exchangeOf } from '../../support/exchange.ts';
import { isWhole, parseResponse, type WireResponse } from '../../support/wire-response.ts';

interface Sending {
  readonly answer: Reply;
  readonly more?: readonly string[];
  readonly isLast?: boolean;
  /** Reads the body before it responds, to its end, as events or without them, only the first bytes, or lets it arrive. */
  readonly reads?: 'all' | 'handed over' | 'some' | 'none' | undefined;
}

/** The bytes sent for a request that is answered like this. */
async function exchange(requestText: string, how: Sending): Promise<WireResponse> {
  const { answer, more = [], isLast = false, reads } = how;
  const server = createServer({ IncomingMessage: RequestStream }, async (request, response) => {
    if (reads === 'some') {
      await once(
        request.once('data', () => request.pause()),
        'pause',
      );
      // In the next turn it is known whether the body that came with the head is complete.
      await new Promise(setImmediate);
    }
    if (reads === 'none') await new Promise(setImmediate);
    if (reads === 'handed over') {
      await new Promise<void>((resolve) => request.readBy((chunk) => chunk === null && resolve()));
    }
    if (reads === 'all') {
      await once(
        request.resume().on('data', () => {}),
        'end',
      );
    }
    writeReply(exchangeOf(request, response).exchange, isLast ? { ...answer, closes: true } : answer, more);
  });

  await once(server.listen(0, '127.0.0.1'), 'listening');
  const wire = await openWire((server.address() as AddressInfo).port);
  wire.send(requestText);
  const received = await wire.until((text) => isWhole(text) || text.endsWith('\r\n\r\n'));
  wire.destroy();
  server.close();
  server.closeAllConnections();
  return parseResponse(received);
}

const withField = (field: string) => `GET / HTTP/1.1\r\nHost: a\r\n${field}\r\n\r\n`;

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
const CHUNKED = `${withField('Transfer-Encoding: chunked')}3\r\nabc\r\n0\r\n\r\n`;
const hello = jsonReply(200, '{"message":"hällo"}');
const NO_CONTENT = reply(204, undefined, { A: '1' }).reply;

test('writes status, fields and content, with the date of Node [RFC 9110 §6.6.1]', async () => {
  const { status, headers, text } = await exchange(GET, { answer: hello });
  assert.equal(status, 200);
  const { date, 'keep-alive': _, ...fixed } = Object.fromEntries(headers);
  assert.ok(date !== undefined);
  assert.deepEqual(fixed, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': '20',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    connection: 'keep-alive',
  });
  assert.equal(Buffer.from(text, 'latin1').toString('utf8'), '{"message":"hällo"}');
});

for (const isLast of [false, true]) {
  test(`adds the fields of the reply, and those given for this one request, to ${isLast ? 'the last' : 'a'} response`, async () => {
    const answer = jsonReply(200, '{}', ['A', '1', 'A', '2']);
    const { headers } = await exchange(GET, { answer, more: ['B', '3'], isLast });
    assert.deepEqual([headers.get('a'), headers.get('b')], ['1\n2', '3']);
  });
}

test('answers HEAD as GET without a body [RFC 9110 §9.3.2]', async () => {
  const { headers, text } = await exchange(GET.replace('GET', 'HEAD'), { answer: hello });
  const content = [headers.get('content-length'), headers.get('content-type'), text];
  assert.deepEqual(content, ['20', 'application/json; charset=utf-8', '']);
});

test('answers 204 without content [RFC 9110 §15.3.5]', async () => {
  const { status, headers, text } = await exchange(GET, { answer: NO_CONTENT });
  assert.deepEqual([status, headers.get('a'), text], [204, '1', '']);
  assert.deepEqual([headers.has('content-type'), headers.has('content-length')], [false, false]);
});

for (const [what, request, how] of [
  ['the reply closes it', GET, { answer: { ...hello, closes: true } }],
  ['it is the last response', GET, { answer: hello, isLast: true }],
  ['a body of known length is announced', withField('Content-Length: 1'), { answer: hello }],
  ['a chunked body is announced', withField('Transfer-Encoding: chunked'), { answer: hello }],
  ['a body arrives with the header', `${withField('Content-Length: 3')}abc`, { answer: hello }],
  ['a whole chunked body arrives with the header', CHUNKED, { answer: hello }],
  ['a whole chunked body has arrived, and is not read', CHUNKED, { answer: hello, reads: 'none' }],
  ['an upgrade is offered', withField('Connection: Upgrade\r\nUpgrade: h2c'), { answer: hello }],
] as const) {
  test(`announces that the connection closes when ${what} [RFC 9112 §9.6]`, async () => {
    assert.equal((await exchange(request, how)).headers.get('connection'), 'close');
    const head = await exchange(request.replace('GET', 'HEAD'), how);
    assert.deepEqual([head.headers.get('connection'), head.text], ['close', '']);
    const without = { ...how, answer: { ...NO_CONTENT, closes: how.answer.closes ?? false } };
    assert.equal((await exchange(request, without)).headers.get('connection'), 'close');
  });
}

for (const [what, request, reads] of [
  ['no body', withField('X: 1'), undefined],
  ['an empty body', withField('Content-Length: 0'), undefined],
  ['a body that was read to its end', `${withField('Content-Length: 3')}abc`, 'all'],
  ['a chunked body that was read to its end', CHUNKED, 'all'],
  ['a body that was handed over', CHUNKED, 'handed over'],
  ['a body that has arrived, of which no more is read', `${withField('Content-Length: 3')}abc`, 'some'],
] as const) {
  test(`keeps the connection after a request with ${what}`, async () => {
    const { headers } = await exchange(request, { answer: hello, reads });
    assert.equal(headers.get('connection'), 'keep-alive');
  });
}

test('passes Node the whole response as one piece', async () => {
  const pieces: string[] = [];
  const server = createServer({ IncomingMessage: RequestStream }, (request, response) => {
    const { socket } = request;
    const write = socket._write.bind(socket);
    socket._write = (chunk, encoding, callback) => {
      pieces.push(chunk);
      write(chunk, encoding, callback);
    };
    socket._writev = (chunks) => pieces.push(...chunks.map(({ chunk }) => chunk));
    writeReply(exchangeOf(request, response).exchange, hello, []);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const wire = await openWire((server.address() as AddressInfo).port);
  wire.send(GET);
  await wire.until(isWhole);
  wire.destroy();
  server.close();
  assert.equal(pieces.length, 1);
  assert.ok(pieces[0]?.startsWith('HTTP/1.1 200 OK\r\n') && pieces[0].endsWith(String(hello.content)));
});

for (const [what, isDestroyed, isWritable] of [
  ['the response is destroyed', true, true],
  ['its connection takes nothing more', false, false],
] as const) {
  test(`writes nothing for a request when ${what}`, () => {
    // Any other call or read would fail.
    const request = { headers: {}, socket: { writable: isWritable } };
    const response = { destroyed: isDestroyed };
    assert.doesNotThrow(() => writeReply(exchangeOf(request, response).exchange, hello, []));
  });
}

test('does not change a reply, which may be sent often', async () => {
  const before = structuredClone(hello);
  await exchange(GET, { answer: hello, more: ['B', '3'], isLast: true });
  await exchange(GET, { answer: hello });
  assert.deepEqual(hello, before);
});

test('hangs up behind an earlier response as the connection ends, since a reset could overtake that [RFC 9112 §9.6]', () => {
  const response = Object.assign(new EventEmitter(), { socket: null });
  hangUp({ response: response as unknown as ServerResponse });
  let endings = 0;

  const destroySoon = () => {
    endings += 1;
  };

  // Any other call would fail.
  response.emit('socket', { destroySoon });
  assert.equal(endings, 1);
});

test('ends the connection, and reports a bug, when Node refuses to write a response, such as one that has begun', async (t) => {
  const app = await startRoutes({
    routes: [get('/', open, () => ({}))],
    environment: { ACCESS_LOG: 'true' },
    prepare: (server) => server.prependListener('request', (_, response) => response.writeHead(202)),
  });
  t.after(() => app.stop());
  const wire = await openWire(app.port);
  wire.send(GET);
  assert.doesNotMatch(await wire.untilClosed(), /\{/);
  assert.deepEqual(
    app.logs.map(({ message, reason, error }) => [message, reason, error]),
    [
      ['request', 'bug', undefined],
      ['request failed', 'bug', 'Error'],
    ],
  );
});

test('hangs up only once the earlier requests are answered', { timeout: 60_000 }, async (t) => {
  const begun: [IncomingMessage, ServerResponse][] = [];
  const server = createServer((...exchange) => begun.push(exchange) === 2 && server.emit('both'));
  // Nothing else ends it.
  server.keepAliveTimeout = 0;
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const wire = await openWire((server.address() as AddressInfo).port);
  t.after(() => {
    wire.destroy();
    server.close();
  });
  wire.send(GET + GET);
  await once(server, 'both');
  const [[request, response], [, next]] = begun as [(typeof begun)[0], (typeof begun)[0]];
  hangUp({ response: next });
  assert.ok(wire.socket.readable && request.socket.writable);

  writeReply(exchangeOf(request, response).exchange, jsonReply(200, '{}'), []);
  assert.equal(parseResponse(await wire.untilClosed()).text, '{}');
});
