/* What the listener does with a connection on which nothing more can be understood (contract §10), and that it forgets those that end. */
import { strict as assert } from 'node:assert';
import { EventEmitter } from 'node:events';
import { test, type TestContext } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createListener } from '../../src/service/listener.ts';

/** Writes down what is done with it. */
class WatchedSocket extends EventEmitter {
  readonly done: string[] = [];
  readonly writable: boolean;
  writableEnded = false;
  constructor(writable = true) {
    super();
    this.writable = writable;
  }
  end(text: string): void {
    this.done.push(`end ${text.split('\r\n')[0]}`);
  }
  destroy(): void {
    this.done.push('destroy');
  }
  setTimeout(): void {}
  resume(): void {
    this.done.push('resume');
  }
}

const refused = () => ({ status: 400, fields: [], text: '' });
const listen = () =>
  createListener({ prepare: () => undefined, answer: () => {}, refuse: refused } as never, () => 0).server;
const MALFORMED = { code: 'HPE_INVALID_METHOD' };
const ANSWERED = ['end HTTP/1.1 400 Bad Request', 'resume'];

/** What is done with a connection when this fails on it. */
function after(failure: object, socket: WatchedSocket, server = listen()): readonly string[] {
  server.emit('connection', socket);
  server.emit('clientError', failure, socket);
  return socket.done;
}

function watchTimers(t: TestContext): (millis: number) => void {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  return (millis) => t.mock.timers.tick(millis);
}

test('answers what is broken, and reads on so that the end of the connection is noticed', (t) => {
  watchTimers(t);
  assert.deepEqual(after(MALFORMED, new WatchedSocket()), ANSWERED);
});

test('writes nothing on a connection that the client has reset', () =>
  assert.deepEqual(after({ code: 'ECONNRESET' }, new WatchedSocket()), ['destroy']));

test('writes nothing on a connection that cannot be written any more', () =>
  assert.deepEqual(after(MALFORMED, new WatchedSocket(false)), ['destroy']));

test('answers what is broken once, however many pieces of it come', (t) => {
  watchTimers(t);
  const [server, socket] = [listen(), new WatchedSocket()];
  after(MALFORMED, socket, server);
  server.emit('clientError', MALFORMED, socket);
  assert.deepEqual(socket.done, ANSWERED);
});

test('gives the client a second to read the answer, unless it closes first', (t) => {
  const pass = watchTimers(t);
  const [slow, quick] = [new WatchedSocket(), new WatchedSocket()];
  for (const socket of [slow, quick]) after(MALFORMED, socket);
  quick.emit('close');
  pass(999);
  assert.deepEqual(slow.done, ANSWERED);
  pass(1);
  assert.deepEqual([slow.done, quick.done], [[...ANSWERED, 'destroy'], ANSWERED]);
});

test('adds nothing behind an answer that ends the connection', () => {
  const [server, socket] = [listen(), new WatchedSocket()];
  const response = Object.assign(new EventEmitter(), { writableFinished: false, headersSent: false });
  server.emit('connection', socket);
  server.emit('request', { socket }, response);
  server.emit('clientError', MALFORMED, socket);
  socket.writableEnded = true;
  response.emit('finish');
  assert.deepEqual(socket.done, []);
});

test('forgets a connection that has ended', async () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const server = listen();
  const connections = [1, 2].map(() => {
    const socket = new WatchedSocket();
    server.emit('connection', socket);
    return {
      socket: new WeakRef(socket),
      fail: () => server.emit('clientError', MALFORMED, socket),
      close: () => socket.emit('close'),
    };
  });
  connections[0]!.fail();
  connections[0]!.close();
  const refs = connections.splice(0).map(({ socket }) => socket);
  await new Promise(setImmediate);
  collectGarbage();
  assert.deepEqual(
    refs.map((ref) => ref.deref() === undefined),
    [true, false],
  );
  assert.equal(server.listening, false);
});

test('leaves no timer behind when it has stopped', async () => {
  const { server, stop } = createListener({} as never, () => 0);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  assert.equal(await stop(), 'drained');
  assert.deepEqual(
    process.getActiveResourcesInfo().filter((name) => name === 'Timeout'),
    [],
  );
});
