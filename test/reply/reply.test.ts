import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mock, test } from 'node:test';
import { noContent, reply, send, type Reply } from '../../src/reply/reply.ts';
import { openWire } from '../support/client.ts';
import { isWhole, parseAnswer, type WireAnswer } from '../support/wire-answer.ts';

interface Exchange {
  readonly answer: Reply;
  readonly more?: readonly string[];
  readonly isLast?: boolean;
  /** What is sent once the answer has arrived. */
  readonly afterwards?: string | Buffer;
}

/** What comes back for a request when it is answered like this: the answer, and all that the connection gave. */
async function exchange(requestText: string, how: Exchange): Promise<WireAnswer & { received: string }> {
  const { answer, more = [], isLast = false, afterwards } = how;
  const server = createServer((request, response) => send(request, response, answer, more, isLast)).listen(
    0,
    '127.0.0.1',
  );
  await once(server, 'listening');
  const wire = await openWire((server.address() as AddressInfo).port);
  wire.send(requestText);
  let received = await wire.until((text) => isWhole(text) || text.endsWith('\r\n\r\n'));
  const parsed = parseAnswer(received);
  if (afterwards !== undefined) wire.send(afterwards);
  if (parsed.headers.get('connection') === 'close') received = await wire.untilClosed();
  wire.destroy();
  server.close();
  server.closeAllConnections();
  return { ...parsed, received };
}

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
const hello = reply(200, { message: 'hällo' });
const NO_CONTENT = noContent(['A', '1']);
const ALWAYS = [
  ['cache-control', 'no-store'],
  ['x-content-type-options', 'nosniff'],
] as const;

test('makes a reply of a status, a body and header fields', () => {
  const fields = (length: string) => [
    'Content-Type',
    'application/json; charset=utf-8',
    'Cache-Control',
    'no-store',
    'X-Content-Type-Options',
    'nosniff',
    'Content-Length',
    length,
  ];
  assert.deepEqual(hello, { status: 200, fields: fields('20'), text: '{"message":"hällo"}' });
  assert.deepEqual(reply(405, {}, ['Allow', 'GET']), {
    status: 405,
    fields: [...fields('2'), 'Allow', 'GET'],
    text: '{}',
  });
});

test('answers JSON in UTF-8, counted in bytes, never stored and never sniffed [RFC 9111 §5.2.2.5, G12]', async () => {
  const { status, headers, text } = await exchange(GET, { answer: hello });
  assert.equal(status, 200);
  const { date, 'keep-alive': _, ...fixed } = Object.fromEntries(headers);
  assert.ok(date !== undefined);
  assert.deepEqual(fixed, {
    ...Object.fromEntries(ALWAYS),
    'content-type': 'application/json; charset=utf-8',
    'content-length': '20',
    connection: 'keep-alive',
  });
  assert.equal(Buffer.from(text, 'latin1').toString('utf8'), '{"message":"hällo"}');
});

test('adds the header fields of the reply and those of the caller', async () => {
  const { headers } = await exchange(GET, { answer: reply(200, {}, ['A', '1', 'A', '2']), more: ['B', '3'] });
  assert.deepEqual([headers.get('a'), headers.get('b')], ['1\n2', '3']);
});

test('answers HEAD as GET without a body [RFC 9110 §9.3.2]', async () => {
  const { headers, text } = await exchange(GET.replace('GET', 'HEAD'), { answer: hello });
  const content = [headers.get('content-length'), headers.get('content-type'), text];
  assert.deepEqual(content, ['20', 'application/json; charset=utf-8', '']);
});

test('answers 204 with the fixed header fields and no content [RFC 9110 §15.3.5]', async () => {
  const { status, headers, text } = await exchange(GET, { answer: NO_CONTENT });
  assert.deepEqual([status, headers.get('a'), text], [204, '1', '']);
  assert.deepEqual([headers.has('content-type'), headers.has('content-length')], [false, false]);
  for (const [name, value] of ALWAYS) assert.equal(headers.get(name), value);
});

const withField = (field: string) => `GET / HTTP/1.1\r\nHost: a\r\n${field}\r\n\r\n`;
const closing = { ...hello, closes: true };
for (const [what, request, sent] of [
  ['the reply closes it', GET, { answer: closing }],
  ['it is the last answer', GET, { answer: hello, isLast: true }],
  [
    'a body of known length is announced',
    withField('Content-Length: 3'),
    { answer: hello, afterwards: 'abc' },
  ],
  [
    'a chunked body is announced',
    withField('Transfer-Encoding: chunked'),
    { answer: hello, afterwards: '3\r\nabc\r\n0\r\n\r\n' },
  ],
  ['a body arrives with the header', `${withField('Content-Length: 3')}abc`, { answer: hello }],
  [
    'a body never ends',
    withField('Content-Length: 99999999'),
    { answer: hello, afterwards: Buffer.alloc(4 * 1024 * 1024) },
  ],
  [
    'an upgrade is offered, after which Node reads nothing',
    withField('Connection: Upgrade\r\nUpgrade: h2c'),
    { answer: hello },
  ],
] as const) {
  test(`answers at once and closes the connection when ${what} [RFC 9112 §9.6]`, async () => {
    const { status, headers, text, received } = await exchange(request, sent);
    const body = Buffer.from(text, 'latin1').toString('utf8');
    assert.deepEqual([status, headers.get('connection'), body], [200, 'close', '{"message":"hällo"}']);
    assert.equal(received.split('HTTP/1.1 ').length, 2);
  });
}

test('closes the connection after HEAD and 204 with a body on its way', async () => {
  const head = await exchange(withField('Content-Length: 3').replace('GET', 'HEAD'), {
    answer: hello,
    afterwards: 'abc',
  });
  assert.deepEqual([head.headers.get('connection'), head.text], ['close', '']);
  const none = await exchange(withField('Content-Length: 3'), { answer: NO_CONTENT, afterwards: 'abc' });
  assert.deepEqual([none.headers.get('connection'), none.text], ['close', '']);
});

for (const [what, field] of [
  ['no body', 'X: 1'],
  ['an empty body', 'Content-Length: 0'],
] as const) {
  test(`keeps the connection after a request with ${what}`, async () => {
    const { headers } = await exchange(withField(field), { answer: hello });
    assert.equal(headers.get('connection'), 'keep-alive');
  });
}

test('gives Node the whole answer as one piece, also while its connection has others to answer first', () => {
  const request = { headers: {}, socket: { destroyed: false } };
  for (const isFree of [true, false]) {
    const done: string[] = [];
    const note = (step: string) => () => {
      done.push(step);
    };
    const socket = isFree ? { cork: note('cork'), uncork: note('uncork') } : null;
    const response = {
      socket,
      writeHead: note('head'),
      write: (text: string) => done.push(text),
      end: (...rest: unknown[]) => done.push(`end ${rest.length}`),
    };
    send(request as unknown as IncomingMessage, response as unknown as ServerResponse, hello, [], false);
    assert.deepEqual(
      done,
      isFree ? ['head', 'cork', hello.text, 'uncork', 'end 0'] : ['head', hello.text, 'end 0'],
    );
  }
});

/** A request whose body is announced and does not come, and a response that notes what is done with it. */
function silentRequest() {
  const socket = { destroyed: false };
  const request = Object.assign(new EventEmitter(), {
    headers: { 'content-length': '5' },
    method: 'POST',
    socket,
  });
  const done: string[] = [];
  Object.assign(request, { pause: () => done.push('pause') });
  const response = {
    writeHead: () => done.push('head'),
    flushHeaders: () => done.push('flush'),
    write: () => done.push('write'),
    end: () => done.push('end'),
  };
  send(request as unknown as IncomingMessage, response as unknown as ServerResponse, hello, [], false);
  return { request, done };
}

test('gives a client 90 seconds to read an answer that did not go out at once, and sets no such time for others', () => {
  for (const [writableLength, times] of [
    [0, []],
    [1, [90_000]],
  ] as const) {
    const set: number[] = [];
    const nothing = () => {};
    const request = { headers: {}, socket: { destroyed: false } };
    const response = {
      socket: null,
      writableLength,
      writeHead: nothing,
      write: nothing,
      end: nothing,
      setTimeout: (millis: number) => set.push(millis),
    };
    send(request as unknown as IncomingMessage, response as unknown as ServerResponse, hello, [], false);
    assert.deepEqual(set, times);
  }
});

for (const [what, gone] of [
  ['the response', { response: true, socket: false }],
  ['its connection', { response: false, socket: true }],
] as const) {
  for (const [kind, headers] of [
    ['with a body', { 'content-length': '5' }],
    ['without a body', {}],
  ] as const) {
    test(`writes nothing for a request ${kind} when ${what} is gone`, () => {
      const request = { headers, socket: { destroyed: gone.socket } };
      // Whatever is called or read beyond that would fail.
      const response = { destroyed: gone.response };
      assert.doesNotThrow(() =>
        send(request as unknown as IncomingMessage, response as unknown as ServerResponse, hello, [], false),
      );
    });
  }
}

test('does not end an answer whose connection has gone while the body was drained', () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  const { request, done } = silentRequest();
  request.socket.destroyed = true;
  request.emit('close');
  mock.timers.tick(60_000);
  assert.deepEqual(done, ['head', 'flush', 'write']);
  mock.timers.reset();
});

test('does not wait long for a body that does not come', () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  const { done } = silentRequest();
  assert.equal(done.at(-1), 'write');
  mock.timers.tick(100);
  assert.equal(done.at(-1), 'write');
  mock.timers.tick(2_900);
  assert.equal(done.at(-1), 'end');
  mock.timers.reset();
});

test('drains a part of a long body and not all of it', () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  const { request, done } = silentRequest();
  for (let chunk = 0; chunk < 4; chunk += 1) request.emit('data', Buffer.alloc(64 * 1024));
  assert.equal(done.at(-1), 'write');
  for (let chunk = 0; chunk < 64; chunk += 1) request.emit('data', Buffer.alloc(64 * 1024));
  assert.equal(done.at(-1), 'pause');
  mock.timers.tick(1_000);
  assert.equal(done.at(-1), 'end');
  mock.timers.reset();
});

for (const event of ['end', 'close']) {
  test(`ends the answer as soon as the request emits "${event}"`, () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    const { request, done } = silentRequest();
    request.emit('data', Buffer.alloc(5));
    assert.equal(done.at(-1), 'write');
    request.emit(event);
    assert.deepEqual(
      done.filter((step) => step === 'end'),
      ['end'],
    );
    mock.timers.tick(60_000);
    assert.deepEqual(
      done.filter((step) => step === 'end'),
      ['end'],
    );
    mock.timers.reset();
  });
}

test('leaves a reply that is sent often as it is', async () => {
  const before = structuredClone(hello);
  await exchange(GET, { answer: hello, more: ['B', '3'], isLast: true });
  await exchange(GET, { answer: hello });
  assert.deepEqual(hello, before);
});
