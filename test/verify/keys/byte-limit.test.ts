/* What counts towards the limit of one fetch, when its connections end, and what its errors become. Over real
   connections: fetch-limit.wire.test.ts. */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { test, type TestContext } from 'node:test';
import { ByteLimit } from '../../../src/verify/keys/byte-limit.ts';
import { FetchError } from '../../../src/verify/keys/jwks.ts';

const MAX_TLS_BYTES = 128 * 1024;

const WATCH_MILLIS = 20;

/** As much of a connection as is counted. */
class Connection extends EventEmitter {
  bytesRead: number;
  isDestroyed = false;

  constructor(bytesBefore = 0) {
    super();
    this.bytesRead = bytesBefore;
  }

  destroy(): void {
    this.isDestroyed = true;
  }

  /** Data, with what is around it. */
  receive(bytes: number, bytesAround = 0): void {
    this.bytesRead += bytes + bytesAround;
    if (bytes > 0) this.emit('data', Buffer.alloc(bytes));
  }

  get asSocket(): Socket {
    return this as unknown as Socket;
  }
}

/** A limit over these connections, and the passing of time. */
function watchAll(t: TestContext, maxBytes: number | undefined, ...connections: readonly Connection[]) {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const limit = new ByteLimit(maxBytes);
  for (const connection of connections) limit.watch(connection.asSocket);

  /** Until it has looked again. */
  const look = async (millis = WATCH_MILLIS) => {
    t.mock.timers.tick(millis);
    await Promise.resolve();
  };

  return { limit, look };
}

const TOO_LARGE = { reason: 'too-large', code: '' };

test('data may be as many bytes as the limit, of all connections together, and one more ends them all [F6]', async (t) => {
  const one = new Connection();
  const other = new Connection();
  const { limit } = watchAll(t, 10, one, other);
  one.receive(6);
  other.receive(4);
  limit.check();
  one.receive(1);
  assert.throws(() => limit.check(), TOO_LARGE);
  // Node's parser still expects its socket to be there.
  assert.equal(one.isDestroyed, false);
  await Promise.resolve();
  assert.deepEqual([one.isDestroyed, other.isDestroyed], [true, true]);
});

test('data above TLS counts, too, and its end is that of the connection below [F6]', async (t) => {
  const below = new Connection();
  const above = new Connection();
  const { limit } = watchAll(t, 10, below);
  limit.count(above.asSocket);
  above.receive(11);
  assert.throws(() => limit.check(), TOO_LARGE);
  await Promise.resolve();
  assert.deepEqual([below.isDestroyed, above.isDestroyed], [true, false]);
});

test('TLS may add 128 KiB, whatever the data, and one byte more is noticed within 20 ms [RFC 9846 §4.6, F6]', async (t) => {
  const one = new Connection(5_000);
  const other = new Connection(7_000);
  const { limit, look } = watchAll(t, 10, one, other);
  one.receive(10, MAX_TLS_BYTES - 1);
  other.receive(0, 1);
  await look();
  limit.check();
  other.receive(0, 1);
  await look(WATCH_MILLIS - 1);
  limit.check();
  await look(1);
  assert.throws(() => limit.check(), TOO_LARGE);
  assert.deepEqual([one.isDestroyed, other.isDestroyed], [true, true]);
});

test('the limit of TLS counts from the limit of data, also before there is any [F6]', async (t) => {
  const connection = new Connection();
  const { limit, look } = watchAll(t, 10, connection);
  connection.receive(0, MAX_TLS_BYTES);
  await look();
  limit.check();
  connection.receive(0, 1);
  await look();
  assert.throws(() => limit.check(), TOO_LARGE);
});

test('data may be 512 KiB where nothing else is said [F6]', (t) => {
  const connection = new Connection();
  const { limit } = watchAll(t, undefined, connection);
  connection.receive(512 * 1024);
  limit.check();
  connection.receive(1);
  assert.throws(() => limit.check(), TOO_LARGE);
});

test('is untouched until data comes', (t) => {
  const connection = new Connection();
  const { limit } = watchAll(t, 10, connection);
  connection.receive(0, 100);
  assert.equal(limit.isUntouched, true);
  connection.receive(1);
  assert.equal(limit.isUntouched, false);
});

test('does not start to read what it counts, which is there for its reader [F6]', (t) => {
  const { limit } = watchAll(t, 10);
  const socket = new Duplex({ read() {} });
  limit.count(socket as Socket);
  socket.push('x');
  assert.deepEqual([socket.readableFlowing, limit.isUntouched], [null, true]);
});

test('is over with the work, whose connections may be kept, with what else listens to them [F6]', async (t) => {
  const connection = new Connection();
  const other = new Connection();
  for (const each of [connection, other]) each.on('data', () => {});
  const { limit, look } = watchAll(t, 10, connection, other);
  assert.equal(await limit.during(Promise.resolve('done')), 'done');
  assert.deepEqual([connection.listenerCount('data'), other.listenerCount('data')], [1, 1]);
  connection.receive(11, MAX_TLS_BYTES);
  await look();
  assert.equal(connection.isDestroyed, false);
});

test('work that succeeds after too much was sent is refused [F6]', async (t) => {
  const connection = new Connection();
  const { limit } = watchAll(t, 10, connection);
  connection.receive(11);
  await assert.rejects(limit.during(Promise.resolve('done')), TOO_LARGE);
  assert.equal(connection.listenerCount('data'), 0);
});

test('work that fails after too much was sent is refused for that [F6]', async (t) => {
  const connection = new Connection();
  const { limit } = watchAll(t, 10, connection);
  connection.receive(11);
  await assert.rejects(limit.during(Promise.reject(new FetchError('timeout'))), TOO_LARGE);
});

const coded = (code: unknown) => Object.assign(new Error('x'), { code });

for (const [thrown, reason, code] of [
  [new FetchError('status-refused', 500), 'status-refused', '500'],
  [coded('ECONNRESET'), 'connection-failed', 'ECONNRESET'],
  [coded('ECANCELED'), 'connection-failed', 'ECANCELED'],
  [coded('DEPTH_ZERO_SELF_SIGNED_CERT'), 'certificate-refused', 'DEPTH_ZERO_SELF_SIGNED_CERT'],
  [coded('ERR_TLS_PROTOCOL_VERSION_CONFLICT'), 'certificate-refused', 'ERR_TLS_PROTOCOL_VERSION_CONFLICT'],
  [coded('ERR_SSL_WRONG_VERSION_NUMBER'), 'certificate-refused', 'ERR_SSL_WRONG_VERSION_NUMBER'],
  [coded('CERT_HAS_EXPIRED'), 'certificate-refused', 'CERT_HAS_EXPIRED'],
  [coded('UNABLE_TO_VERIFY_LEAF_SIGNATURE'), 'certificate-refused', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE'],
  [coded('ERR_TLS_CERT_ALTNAME_INVALID'), 'certificate-refused', 'ERR_TLS_CERT_ALTNAME_INVALID'],
  [coded('INVALID_CA'), 'certificate-refused', 'INVALID_CA'],
  [coded('PATH_LENGTH_EXCEEDED'), 'certificate-refused', 'PATH_LENGTH_EXCEEDED'],
  [coded('INVALID_PURPOSE'), 'certificate-refused', 'INVALID_PURPOSE'],
  [coded('HOSTNAME_MISMATCH'), 'certificate-refused', 'HOSTNAME_MISMATCH'],
] as const) {
  test(`work that fails with ${thrown.code} ends its connections, and is ${reason} [F11]`, async (t) => {
    const connection = new Connection();
    const { limit } = watchAll(t, 10, connection);
    await assert.rejects(limit.during(Promise.reject(thrown)), (error) => {
      assert.ok(FetchError.is(error));
      assert.deepEqual([error.reason, error.code], [reason, code]);
      return true;
    });
    assert.equal(connection.isDestroyed, true);
  });
}

test('work that fails with an error without a code ends its connections, and passes the error on [F11]', async (t) => {
  const connection = new Connection();
  const { limit } = watchAll(t, 10, connection);
  const thrown = new RangeError('x');
  await assert.rejects(limit.during(Promise.reject(thrown)), (error) => error === thrown);
  assert.equal(connection.isDestroyed, true);
});
