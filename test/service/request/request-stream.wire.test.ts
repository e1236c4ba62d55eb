/* The memory of an unread body: one piece of bounded length, however small the chunks; and how it is read, as the
   events of a stream or without them. */
import { strict as assert } from 'node:assert';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { Socket, type AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { Listener } from '../../../src/service/connection/listener.ts';
import { RequestStream } from '../../../src/service/request/exchange.ts';
import { openWire, type Wire } from '../../support/client.ts';
import { TestClock } from '../../support/clock.ts';
import { post } from '../../support/listener.ts';
import { statusesIn } from '../../support/raw-responses.ts';

const HEAD = post('Transfer-Encoding: chunked\r\n');
const END = '0\r\n\r\n';

const inChunks = (text: string) => [...text].map((letter) => `1\r\n${letter}\r\n`).join('');

/** A request that only the test answers or reads. */
async function hold(context: TestContext, bytes: string): Promise<[RequestStream, ServerResponse, Wire]> {
  const { server } = new Listener(
    { startTiming: () => 0, respond: () => {} } as never,
    new TestClock(),
    15_000,
  );
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const wire = await openWire((server.address() as AddressInfo).port);
  context.after(() => {
    wire.destroy();
    server.close();
  });
  const asked = once(server, 'request') as Promise<[RequestStream, ServerResponse]>;
  wire.send(bytes);
  const held = await asked;
  // The bytes that came with the head are there at the end of the turn.
  await new Promise(setImmediate);
  return [...held, wire];
}

/** The pieces in which the request delivers its body. */
async function piecesOf(request: RequestStream): Promise<string[]> {
  const pieces: string[] = [];
  request.on('data', (piece: Buffer) => pieces.push(piece.toString()));
  if (!request.readableEnded) await once(request, 'end');
  return pieces;
}

/** The same for a reader, which gets them without events. */
function handedOver(request: RequestStream): Promise<string[]> {
  const pieces: string[] = [];
  return new Promise((resolve) => {
    request.readBy((chunk) => {
      if (chunk === null) resolve(pieces);
      else pieces.push(chunk.toString());
    });
  });
}

/** The names of the events from now on. */
function emittedBy(request: RequestStream): readonly unknown[] {
  const emitted: unknown[] = [];
  const emit = request.emit.bind(request);
  request.emit = (name: string | symbol, ...parts: unknown[]) =>
    emitted.push(name) > 0 && emit(name, ...parts);
  return emitted;
}

const LETTERS = 'abcdefghij'.repeat(200);

for (const [how, read] of [
  ['as events', piecesOf],
  ['without events', handedOver],
] as const) {
  test(`keeps the small pieces of an unread body as one piece, even if the body is complete, ${how}`, async (t) => {
    const [request] = await hold(t, `${HEAD}${inChunks(LETTERS)}${END}`);
    while (!request.complete) await new Promise(setImmediate);
    assert.deepEqual(await read(request), [LETTERS]);
  });

  test(`delivers the bytes from before the first read as one piece, then the rest in order, ${how}`, async (t) => {
    const [request, , wire] = await hold(t, `${HEAD}${inChunks(LETTERS)}`);
    const sent = HEAD.length + inChunks(LETTERS).length;
    while (request.socket.bytesRead < sent) await new Promise(setImmediate);
    const pieces = read(request);
    wire.send(`${inChunks('xyz')}${END}`);
    const [first, ...others] = await pieces;
    assert.deepEqual([first, others.join('')], [LETTERS, 'xyz']);
  });

  test(`buffers a limited amount while unread, and continues once read, ${how}`, async (t) => {
    const mebibyte = 'x'.repeat(1024 * 1024);
    const [request, , wire] = await hold(t, `${post(`Content-Length: ${mebibyte.length}\r\n`)}${mebibyte}`);
    while (!request.socket.isPaused()) await new Promise(setImmediate);
    assert.ok(request.socket.bytesRead <= request.readableHighWaterMark + 2 * 65_536);
    assert.equal((await read(request)).join('').length, mebibyte.length);
    assert.equal(wire.socket.destroyed, false);
  });
}

test('delivers what has arrived as soon as it is listened to, though no more comes', async (t) => {
  const [request] = await hold(t, `${HEAD}${inChunks(LETTERS)}`);
  const sent = HEAD.length + inChunks(LETTERS).length;
  while (request.socket.bytesRead < sent) await new Promise(setImmediate);
  const [piece] = await Promise.race([once(request, 'data'), new Promise<never[]>(setImmediate)]);
  assert.equal(String(piece), LETTERS);
});

test('hands a body over to its reader as it arrives, and is then read, without an event', async (t) => {
  const [request, , wire] = await hold(t, HEAD);
  const emitted = emittedBy(request);
  const pieces = handedOver(request);
  assert.equal(request.isRead, false);

  wire.send(`${inChunks('xyz')}${END}`);
  assert.deepEqual((await pieces).join(''), 'xyz');
  assert.deepEqual([request.isRead, emitted], [true, []]);
});

/** From Node 26 on, Node reads an empty body to its end once the request has its response. */
const OF_NODE = Number.parseInt(process.versions.node, 10) < 26 ? [] : ['end', 'close'];

test('an empty body ends without events, unless something listens for its data', async (t) => {
  const [request, response, wire] = await hold(t, `${HEAD}${END}`);
  const emitted = emittedBy(request);
  // As Node's does, for a chain of calls.
  assert.equal(request.resume(), request);
  await new Promise(setImmediate);
  assert.deepEqual(emitted, []);
  response.end();
  await wire.until((text) => text.includes('200'));
  await new Promise(setImmediate);
  assert.deepEqual(emitted, OF_NODE);

  const [other] = await hold(t, `${HEAD}${END}`);
  const heard = emittedBy(other);
  other.on('data', assert.fail);
  await new Promise(setImmediate);
  assert.deepEqual(heard, ['resume', 'end', 'close']);
});

test('is not read before its body is asked for, even if that is complete', async (t) => {
  const [request] = await hold(t, `${HEAD}${inChunks('xyz')}${END}`);
  while (!request.complete) await new Promise(setImmediate);
  assert.equal(request.isRead, false);
  await piecesOf(request);
  assert.equal(request.isRead, true);
});

test('releases unread bytes once the request is answered', async (t) => {
  const [request, response, wire] = await hold(
    t,
    `${HEAD}${inChunks(LETTERS)}${END}${post('Connection: close\r\n')}`,
  );
  response.end();
  assert.deepEqual(statusesIn(await wire.until((text) => text.includes('200'))), [200]);
  while (!request.readableEnded) await new Promise(setImmediate);
  assert.equal(request.readableLength, 0);
});

test('asks for more only while the unread bytes are below the high-water mark of the stream', () => {
  const request = new RequestStream(new Socket());
  const most = request.readableHighWaterMark;
  assert.equal(request.push(Buffer.alloc(most - 1)), true);
  assert.equal(request.push(Buffer.alloc(1)), false);
});
