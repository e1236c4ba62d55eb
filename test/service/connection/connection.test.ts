/* How long a connection has been idle, unread or ended, measured at the sweeps: bytes from the client do not
   reset it. And when it is read: not far ahead of its responses, and not after its last. */
import { strict as assert } from 'node:assert';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import { Connection } from '../../../src/service/connection/connection.ts';
import { Exchange } from '../../../src/service/request/exchange.ts';

const SECOND = 1_000;

class FakeSocket extends EventEmitter {
  readonly received: string[] = [];
  bytesRead = 0;
  bytesWritten = 0;
  isPaused = true;
  readable = true;
  writableEnded = false;

  get writable(): boolean {
    return !this.writableEnded;
  }

  end(text = ''): void {
    this.received.push(text);
    this.writableEnded = true;
  }

  destroySoon(): void {}

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
  }

  setKeepAlive(): void {}

  _read(): void {}
}

function open(requestMillis = 15_000) {
  const socket = new FakeSocket();
  const connection = new Connection(socket as never, requestMillis);

  /** A request arrives. The result writes and finishes its response. */
  const ask = (complete = true) => {
    const request = { complete, socket };
    const state = {
      writableEnded: false,
      headersSent: false,
      writableNeedDrain: false,
      shouldKeepAlive: true,
    };
    const response = Object.assign(new EventEmitter(), state);
    const exchange = new Exchange(request as never, response as never, connection, 0);
    connection.begin(exchange);

    const write = () => {
      response.writableEnded = true;
    };

    return { exchange, request, response, write, finish: () => response.emit('finish') };
  };

  /** The second in which a sweep finds that a limit has passed, with a sweep every second from this one. */
  const overdueFrom = (second: number, until = second + 1_000) => {
    for (let now = second; now <= until; now += 1) {
      if (connection.isOverdue(now * SECOND)) return now;
    }
    return undefined;
  };

  return { socket, connection, ask, overdueFrom };
}

test('keeps an idle connection for 72 seconds', () => {
  assert.equal(open().overdueFrom(5), 77);
});

test('counts the 72 seconds from the last finished response [G14]', () => {
  const { ask, overdueFrom } = open();
  assert.equal(overdueFrom(0, 40), undefined);
  const { write, finish } = ask();
  write();
  finish();
  assert.equal(overdueFrom(41), 113);
});

test('lets calls follow those that it replaces on the socket, as Node does', () => {
  const { socket, connection } = open();
  connection.endReading();
  for (const name of ['setTimeout', 'resume']) {
    assert.equal(Reflect.apply(Reflect.get(socket, name), socket, []), socket, name);
  }
});

test('sets no deadline for a response that is not yet written, even if its client has closed its side', () => {
  const { socket, ask, overdueFrom } = open();
  ask();
  assert.equal(overdueFrom(0, 4_000), undefined);
  socket.readable = false;
  assert.equal(overdueFrom(4_001, 8_000), undefined);
});

test('is idle while every response is written and nothing of another request has arrived', () => {
  const { socket, connection, ask } = open();
  assert.equal(connection.isIdle, true);
  socket.bytesRead = 30;
  assert.equal(connection.isIdle, false);
  const { write, finish } = ask();
  write();
  assert.equal(connection.isIdle, false);
  finish();
  assert.equal(connection.isIdle, true);
  socket.bytesRead = 40;
  assert.equal(connection.isIdle, false);
});

test('has begun to receive a request when a part of its header has arrived and no response is in flight', () => {
  const { socket, connection, ask } = open();
  assert.equal(connection.hasBegun, false);
  socket.bytesRead = 30;
  assert.equal(connection.hasBegun, true);
  const { finish } = ask();
  assert.equal(connection.hasBegun, false);
  finish();
  assert.equal(connection.hasBegun, false);
});

test('gives each request 15 seconds to arrive', () => {
  const { connection, ask } = open();
  const isLate = (second: number) => connection.isLate(second * SECOND);
  ask();
  assert.deepEqual([isLate(0), isLate(90)], [false, false]);
  ask(false);
  assert.deepEqual([isLate(91), isLate(105), isLate(106)], [false, false, true]);
  ask(false);
  assert.deepEqual([isLate(107), isLate(121), isLate(122)], [false, false, true]);
});

test('gives each request the time of REQUEST_TIMEOUT_SECONDS to arrive', () => {
  const { connection, ask } = open(60 * SECOND);
  ask(false);
  assert.deepEqual(
    [0, 59, 60].map((second) => connection.isLate(second * SECOND)),
    [false, false, true],
  );
});

test('does not time a request while reading is paused for want of earlier responses, which is our doing', () => {
  const { socket, connection, ask } = open();
  const isLate = (second: number) => connection.isLate(second * SECOND);
  const first = ask();
  socket.bytesRead = 64 * 1024 + 1;
  ask(false);
  assert.deepEqual([isLate(0), isLate(90)], [false, false]);
  first.finish();
  assert.deepEqual([isLate(91), isLate(105), isLate(106)], [false, false, true]);
});

test('gives a client 90 seconds for a response that was written before an earlier one, from when that was written', () => {
  const { ask, overdueFrom } = open();
  const first = ask();
  ask().write();
  assert.equal(overdueFrom(0, 100), undefined);
  first.write();
  first.finish();
  assert.equal(overdueFrom(101), 191);
});

test('gives the client of a stream 90 seconds without reading, which count from the last byte that it took', () => {
  const { socket, ask, overdueFrom } = open();
  const { exchange, response } = ask();
  exchange.onInterrupted(() => {});
  assert.equal(overdueFrom(0, 100), undefined);
  response.writableNeedDrain = true;
  assert.equal(overdueFrom(101, 180), undefined);
  socket.bytesWritten = 1;
  assert.equal(overdueFrom(181, 270), undefined);
  assert.equal(overdueFrom(271), 272);
});

test('gives the client of a stream 90 seconds from the first sweep if it has closed its side and nothing is written', () => {
  const { socket, ask, overdueFrom } = open();
  ask().exchange.onInterrupted(() => {});
  socket.readable = false;
  assert.equal(overdueFrom(0), 90);
});

test('gives a client 90 seconds from when its oldest unread response was written, however many it has read and however many follow [G14]', () => {
  const { ask, overdueFrom } = open();
  const first = ask();
  const second = ask();
  assert.equal(overdueFrom(0, 30), undefined);
  first.write();
  second.write();
  assert.equal(overdueFrom(31, 80), undefined);
  ask().write();
  first.finish();
  assert.equal(overdueFrom(81), 121);
});

test('times a stream whose body has ended as any response', () => {
  const { ask, overdueFrom } = open();
  const { exchange, write } = ask();
  exchange.onInterrupted(() => {});
  write();
  assert.equal(overdueFrom(0), 90);
});

for (const [isRead, expected] of [
  [true, undefined],
  [false, 90],
] as const) {
  const limit = isRead ? 'no deadline' : '90 seconds';

  test(`gives a silent stream ${limit} if its connection is ${isRead ? '' : 'not '}read`, () => {
    const { socket, ask, overdueFrom } = open();
    ask().exchange.onInterrupted(() => {});
    Object.assign(socket, { readableFlowing: isRead });
    assert.equal(overdueFrom(0), expected);
  });
}

test('times a response from when it and all responses before it were written', () => {
  const { ask, overdueFrom } = open();
  const first = ask();
  const second = ask();
  second.write();
  assert.equal(overdueFrom(0, 200), undefined);
  first.write();
  assert.equal(overdueFrom(201, 250), undefined);
  const third = ask();
  third.write();
  assert.equal(overdueFrom(251, 260), undefined);
  first.finish();
  second.finish();
  assert.equal(overdueFrom(261), 341);
});

test('gives a client one second to close after the last response', () => {
  const { socket, overdueFrom } = open();
  socket.destroySoon();
  assert.deepEqual([socket.received, socket.isPaused], [[''], false]);
  assert.equal(overdueFrom(7), 8);
});

test('discards up to a mebibyte after the last response, then stops reading', () => {
  const { socket } = open();
  const requests: Buffer[] = [];
  socket.on('data', (chunk) => requests.push(chunk));
  socket.destroySoon();
  socket.emit('data', Buffer.alloc(1024 * 1024));
  assert.equal(socket.isPaused, false);
  socket.emit('data', Buffer.alloc(1));
  assert.deepEqual([socket.isPaused, requests], [true, []]);
});

test('writes the first closing response that it is given, after the in-flight responses, and no other', () => {
  const { socket, connection, ask } = open();
  const first = ask();
  const second = ask();
  connection.endWith(() => 'malformed');
  connection.endWith(() => assert.fail('a second word'));
  first.finish();
  assert.deepEqual(socket.received, []);
  second.finish();
  assert.deepEqual(socket.received, ['malformed']);
});

test('writes nothing after a response that has ended the connection', () => {
  const { socket, connection, ask } = open();
  const { finish } = ask();
  connection.endWith(() => assert.fail('a word behind the end'));
  socket.destroySoon();
  finish();
  assert.deepEqual(socket.received, ['']);
});

const AHEAD_BYTES = 64 * 1024;

/** A connection that reads, with a response in flight and, read behind its request, so many bytes. */
function openReading(bytesAhead: number) {
  const opened = open();
  const { socket, ask } = opened;
  socket.isPaused = false;
  const first = ask();
  socket.bytesRead = bytesAhead;
  return { ...opened, first, second: ask() };
}

test('reads 64 KiB ahead of the oldest response [docs/logs-and-metrics.md]', () => {
  assert.equal(openReading(AHEAD_BYTES).socket.isPaused, false);
});

test('reads no more than 64 KiB ahead, until the oldest response is finished [docs/logs-and-metrics.md]', () => {
  const { socket, ask, first, second } = openReading(AHEAD_BYTES);
  socket.bytesRead += 1;
  ask();
  assert.equal(socket.isPaused, true);
  first.finish();
  assert.equal(socket.isPaused, false);
  // From now on a pause is not ours.
  socket.pause();
  second.finish();
  assert.equal(socket.isPaused, true);
});

test('does not resume reading if too much has also been read ahead of the next response', () => {
  const { socket, ask, first } = openReading(1);
  socket.bytesRead = 2 + AHEAD_BYTES;
  ask();
  first.finish();
  assert.equal(socket.isPaused, true);
});

test('does not resume a socket that something else has paused', () => {
  const { socket, first } = openReading(1);
  socket.pause();
  first.finish();
  assert.equal(socket.isPaused, true);
});

for (const [what, end] of [
  ['bytes that are not a request', ({ connection }) => connection.endWith(() => 'malformed')],
  ['a response that ends the connection', ({ connection }) => connection.endReading()],
  ['the last request of a drain', ({ connection }) => connection.finishUp()],
] as readonly (readonly [string, (opened: ReturnType<typeof open>) => unknown])[]) {
  test(`reads nothing after ${what}, even once the earlier responses are finished [RFC 9112 §9.6]`, () => {
    const opened = openReading(AHEAD_BYTES + 1);
    end(opened);
    opened.first.finish();
    assert.equal(opened.socket.isPaused, true);
  });
}

for (const [then, fate, isPaused, pieces] of [
  [undefined, 'is not read', true, 1],
  ['pause', 'is not read', true, 1],
  ['drop', 'is dropped', false, 0],
  ['read', 'is read', false, 1],
] as const) {
  test(`what arrives once the last response is known ${fate}: ${then} [RFC 9112 §9.6]`, () => {
    const { socket, connection } = openReading(1);
    const received: Buffer[] = [];
    socket.on('data', (piece) => received.push(piece));
    connection.endReading(then);
    socket.emit('data', Buffer.alloc(1));
    assert.deepEqual([socket.isPaused, received.length, connection.isEnding], [isPaused, pieces, true]);
  });
}

test('aborts the signal of the last request when its client closes its side, even if what it sends is dropped', () => {
  const { socket, connection, ask } = open();
  const { signal } = ask().exchange.controller;
  connection.endReading('drop');
  socket.emit('end');
  assert.equal(signal.aborted, true);
});

test('writes a closing response at once if none is in flight, and reads nothing more before it otherwise', () => {
  const idle = open();
  idle.connection.endWith(() => 'malformed');
  assert.deepEqual(idle.socket.received, ['malformed']);
  const busy = openReading(1);
  busy.connection.endWith(() => 'malformed');
  assert.deepEqual([busy.socket.received, busy.socket.isPaused], [[], true]);
});

test('in a drain, tells each response in flight', () => {
  const { connection, first, second } = openReading(1);
  const told: string[] = [];
  first.exchange.onInterrupted(() => told.push('first'));
  second.exchange.onInterrupted(() => told.push('second'));
  connection.finishUp();
  assert.deepEqual(told, ['first', 'second']);
});

test('in a drain, closes after the last request that has arrived, and reads nothing after it [RFC 9112 §9.6]', () => {
  const { socket, connection, first, second } = openReading(1);
  connection.finishUp();
  assert.deepEqual([first.response.shouldKeepAlive, second.response.shouldKeepAlive], [true, false]);
  assert.equal(socket.isPaused, true);
});

test('in a drain, closes after the next request if the last response has begun [RFC 9112 §9.6]', () => {
  const { socket, connection, ask, second } = openReading(1);
  Object.assign(second.response, { headersSent: true });
  connection.finishUp();
  assert.deepEqual([second.response.shouldKeepAlive, socket.isPaused], [true, false]);
  assert.equal(ask().response.shouldKeepAlive, false);
});

test('in a drain, reads nothing after the requests that have arrived together [RFC 9112 §9.6]', async () => {
  const { socket, connection, ask, second } = openReading(1);
  Object.assign(second.response, { headersSent: true });
  connection.finishUp();
  ask();
  assert.equal(socket.isPaused, false);
  await new Promise(setImmediate);
  assert.equal(socket.isPaused, true);
});

test('in a drain, keeps reading while a request is arriving, and closes after its response, or after that of a later request if one follows [RFC 9112 §9.6]', () => {
  const { socket, connection, ask, second } = openReading(1);
  Object.assign(second.request, { complete: false });
  connection.finishUp();
  assert.deepEqual([second.response.shouldKeepAlive, socket.isPaused], [false, false]);
  const { response: third } = ask();
  assert.deepEqual([second.response.shouldKeepAlive, third.shouldKeepAlive], [true, false]);
  Object.assign(third, { headersSent: true });
  const { response: fourth } = ask();
  assert.deepEqual([third.shouldKeepAlive, fourth.shouldKeepAlive], [false, false]);
});

test('aborts the signal of a request once, when the client closes its side or the connection is gone', () => {
  const { socket, connection, ask } = open();
  const { exchange } = ask();
  let aborts = 0;
  exchange.controller.signal.addEventListener('abort', () => {
    aborts += 1;
  });
  assert.equal(aborts, 0);
  socket.emit('end');
  assert.equal(aborts, 1);
  connection.leave();
  assert.equal(aborts, 1);
});

test('aborts the signal of a request whose response waits for that of an earlier one when its client leaves', () => {
  const { socket, ask } = open();
  ask();
  const { exchange, write } = ask();
  const { signal } = exchange.controller;
  write();
  socket.emit('end');
  assert.equal(signal.aborted, true);
});

test('does not abort the signal of a request when the client closes its side after we closed ours', () => {
  const { socket, ask } = open();
  const { exchange } = ask();
  const { signal } = exchange.controller;
  socket.destroySoon();
  socket.emit('end');
  assert.equal(signal.aborted, false);
});
