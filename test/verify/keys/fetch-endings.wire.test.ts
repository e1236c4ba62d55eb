/* Every way in which an exchange with the provider can end, or not end: each fetch settles and leaves no
   connection open. Other responses: fetch-faults.wire.test.ts. */
import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ClientRequest } from 'node:http';
import { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { test, type TestContext } from 'node:test';
import type { TLSSocket } from 'node:tls';
import type { KeySource } from '../../../src/verify/keys/fetch.ts';
import type { FetchErrorReason } from '../../../src/verify/base/events.ts';
import { startProxy } from '../../idp/proxy.ts';
import { cutTls, speakTls, startRawServer, type RawServer } from '../../idp/raw-server.ts';
import { fetchKeys, reasonAtDeadline, reasonOf, sourceAt } from './fetch-fixture.ts';

/** A test that waits for a deadline fails if the deadline does not pass. */
const BOUNDED = { timeout: 60_000 };
/** For tests in which only the deadline can end the fetch. */
const SHORT_DEADLINE_MILLIS = 120;
/** Too far away to be what closed a connection. */
const FAR_DEADLINE_MILLIS = 60_000;

/** The outcome of a fetch: an error, or the keys of `KEYS`. */
type Outcome = [FetchErrorReason, string] | 'keys';
const TIMEOUT: Outcome = ['timeout', ''];
const CUT: Outcome = ['connection-failed', 'ECONNRESET'];
const SWITCHED: Outcome = ['connection-failed', ''];

async function start(context: TestContext, handle: (socket: Socket) => void): Promise<RawServer> {
  const server = await startRawServer(handle);
  context.after(() => server.stop());
  return server;
}

const sourceOf = ({ port }: RawServer, path = '') => sourceAt(`https://localhost:${port}/${path}`);

async function assertOutcome(source: KeySource, outcome: Outcome): Promise<void> {
  const timeoutMillis = outcome === TIMEOUT ? SHORT_DEADLINE_MILLIS : FAR_DEADLINE_MILLIS;
  if (outcome === 'keys') assert.deepEqual((await fetchKeys(source, timeoutMillis)).keys, []);
  else assert.deepEqual(await reasonOf(source, timeoutMillis), outcome);
}

const BODY = '{"keys":[]}';
const KEYS = `HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n${BODY}`;
const UNFRAMED = `HTTP/1.1 200 OK\r\n\r\n${BODY}`;
const CHUNKED = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n${BODY}\r\n0\r\n`;
const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';

const interim = (status: number) => `HTTP/1.1 ${status} Wait\r\nLink: </>\r\n\r\n`;

const field = (count: number) => 'a: b\r\n'.repeat(count);

const ANSWERS: [condition: string, response: string, outcome: Outcome][] = [
  ['switches protocols [RFC 9110 §15.2.2]', SWITCH, SWITCHED],
  ['switches protocols and goes on in the other one', `${SWITCH}\0\0`, SWITCHED],
  ['switches protocols after an interim response', `${interim(100)}${SWITCH}`, SWITCHED],
  ['switches protocols without naming one', 'HTTP/1.1 101 X\r\n\r\n', ['status-refused', '101']],
  [
    'switches protocols without naming one, and sends keys',
    `HTTP/1.1 101 X\r\n\r\n${KEYS}`,
    ['status-refused', '101'],
  ],
  [
    'offers another protocol beside the keys [RFC 9110 §7.8]',
    KEYS.replace('OK\r\n', 'OK\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n'),
    'keys',
  ],
  ['sends 100 before the keys [RFC 9110 §15.2]', `${interim(100)}${KEYS}`, 'keys'],
  ['sends 102, 103 and 199 before the keys', `${interim(102)}${interim(103)}${interim(199)}${KEYS}`, 'keys'],
  ['sends ten interim responses before the keys', `${interim(103).repeat(10)}${KEYS}`, 'keys'],
  ['sends an interim response and nothing more', interim(100), TIMEOUT],
  ['sends the keys twice', `${KEYS}${KEYS}`, 'keys'],
  ['switches protocols after the keys', `${KEYS}${SWITCH}`, 'keys'],
  ['never ends its head', 'HTTP/1.1 200 OK\r\nContent-Length: 11\r\na', TIMEOUT],
  ['never ends its body', KEYS.slice(0, -1), TIMEOUT],
  ['sends no end to a body of chunks', CHUNKED, TIMEOUT],
  ['never ends its trailers', `${CHUNKED}a: b\r\n`, TIMEOUT],
  ['ends a body of chunks', `${CHUNKED}\r\n`, 'keys'],
  ['sends trailers [RFC 9112 §7.1.2]', `${CHUNKED}${field(3)}\r\n`, 'keys'],
  ['floods with trailers', `${CHUNKED}${field(100_000)}`, CUT],
  ['floods with chunk extensions', CHUNKED.replace('b\r\n', `b;${'x'.repeat(100_000)}\r\n`), CUT],
  ['sends a chunk without a length', CHUNKED.replace('b\r\n', 'x\r\n'), CUT],
  [
    'floods with fields',
    `HTTP/1.1 200 OK\r\n${field(100_000)}`,
    ['connection-failed', 'HPE_HEADER_OVERFLOW'],
  ],
  [
    'sends a body framed in two ways [RFC 9112 §6.3]',
    CHUNKED.replace('OK\r\n', 'OK\r\nContent-Length: 11\r\n'),
    ['connection-failed', 'HPE_INVALID_TRANSFER_ENCODING'],
  ],
  ['does not speak HTTP', '{"keys":[]}', ['connection-failed', 'HPE_INVALID_CONSTANT']],
  [
    'sends a body where the status allows none',
    'HTTP/1.1 204 No Content\r\n\r\n{"keys":[]}',
    ['status-refused', '204'],
  ],
  ['answers with status 0', UNFRAMED.replace('200', '000'), ['status-refused', '0']],
];

for (const [condition, response, outcome] of ANSWERS) {
  const end = outcome === 'keys' ? 'takes the keys' : `fails with ${outcome[0]}`;

  test(`${end} and leaves no connection when the provider ${condition} [F11]`, BOUNDED, async (context) => {
    const server = await start(context, (socket) => speakTls(socket, (secure) => secure.write(response)));
    await assertOutcome(sourceOf(server), outcome);
    await server.closed();
  });
}

test(
  'takes the keys and leaves no connection when the body of a 404 for the discovery document never ends [F11]',
  BOUNDED,
  async (context) => {
    const speak = (secure: TLSSocket, request: string) => {
      const isForKeys = request.startsWith('GET /.well-known/jwks.json ');
      secure.write(isForKeys ? KEYS : 'HTTP/1.1 404 Not Found\r\nContent-Length: 11\r\n\r\n{');
    };

    const server = await start(context, (socket) => speakTls(socket, speak));
    const domain = `localhost:${server.port}`;
    await assertOutcome({ domain, issuer: `https://${domain}/`, jwksUri: undefined }, 'keys');
    await server.closed();
  },
);

type Ending = (secure: TLSSocket, socket: Socket) => void;

const ENDINGS: Record<string, Ending> = {
  'is closed': (secure) => secure.end(),
  'is closed without close_notify [RFC 9846 §6.1]': (_, socket) => socket.end(),
  'is reset': (_, socket) => socket.resetAndDestroy(),
};

for (const [name, end] of Object.entries(ENDINGS)) {
  test(
    `fails when the connection ${name} before the response, or after any of its bytes but the last [F11]`,
    BOUNDED,
    async (context) => {
      const speak = (secure: TLSSocket, request: string, socket: Socket) => {
        const bytes = Number(/^GET \/(\d+) /.exec(request)?.[1]);
        if (bytes === 0) end(secure, socket);
        else secure.write(KEYS.slice(0, bytes), () => end(secure, socket));
      };

      const server = await start(context, (socket) => speakTls(socket, speak));
      const lengths = Array.from({ length: KEYS.length }, (_, bytes) => bytes);
      const reasons = await Promise.all(lengths.map((bytes) => reasonOf(sourceOf(server, String(bytes)))));
      assert.deepEqual(
        reasons,
        lengths.map(() => CUT),
      );
      await assertOutcome(sourceOf(server, String(KEYS.length)), 'keys');
      await server.closed();
    },
  );

  test(
    `fails when the connection ${name} within a body without a length [RFC 9112 §8]`,
    BOUNDED,
    async (context) => {
      const part = UNFRAMED.slice(0, -1);

      const speak = (secure: TLSSocket, _: string, socket: Socket) =>
        secure.write(part, () => end(secure, socket));

      const server = await start(context, (socket) => speakTls(socket, speak));
      const [reason] = await reasonOf(sourceOf(server));
      assert.ok(reason === 'not-a-json-object' || reason === 'connection-failed', reason);
      await server.closed();
    },
  );
}

const STALLS: Record<string, (socket: Socket) => void> = {
  'before a byte of TLS': (socket) => socket.resume(),
  'after one byte of TLS': (socket) => cutTls(socket, 1, () => {}),
  'in the middle of the handshake': (socket) => cutTls(socket, 300, () => {}),
  'after the handshake': (socket) => speakTls(socket, () => {}),
};

for (const [where, handle] of Object.entries(STALLS)) {
  test(
    `fails with timeout and leaves no connection when the provider stalls ${where} [F7]`,
    BOUNDED,
    async (context) => {
      const server = await start(context, handle);
      assert.deepEqual(await reasonAtDeadline(sourceOf(server), server), TIMEOUT);
      assert.equal(server.connections, 1);
      await server.closed();
    },
  );
}

const GREETINGS: [condition: string, handle: (socket: Socket) => void, outcome: Outcome][] = [
  ['closes at once', (socket) => socket.end().resume(), CUT],
  ['resets at once', (socket) => socket.resetAndDestroy(), CUT],
  ['closes after the ClientHello', (socket) => socket.once('data', () => socket.end()), CUT],
  ['resets after the ClientHello', (socket) => socket.once('data', () => socket.resetAndDestroy()), CUT],
  [
    'sends close_notify instead of a greeting',
    (socket) => socket.once('data', () => socket.write(Buffer.from('15030300020100', 'hex'))),
    CUT,
  ],
  [
    'refuses the handshake',
    (socket) => socket.once('data', () => socket.write(Buffer.from('15030300020228', 'hex'))),
    ['connection-failed', 'EPROTO'],
  ],
  [
    'speaks HTTP without TLS',
    (socket) => socket.once('data', () => socket.write(KEYS)),
    ['connection-failed', 'EPROTO'],
  ],
];

for (const [condition, handle, outcome] of GREETINGS) {
  test(`fails and leaves no connection when the provider ${condition}`, BOUNDED, async (context) => {
    const server = await start(context, handle);
    await assertOutcome(sourceOf(server), outcome);
    await server.closed();
  });
}

for (const [name, end] of [
  ['closed', (socket: Socket) => socket.end()],
  ['reset', (socket: Socket) => socket.resetAndDestroy()],
] as const) {
  test(`fails when the connection is ${name} anywhere in the handshake [F11]`, BOUNDED, async (context) => {
    const lengths = Array.from({ length: 60 }, (_, index) => 1 + index * 15);
    const left = [...lengths];
    const server = await start(context, (socket) => cutTls(socket, left.shift() ?? 1, end));
    const reasons = await Promise.all(lengths.map(() => reasonOf(sourceOf(server))));
    assert.deepEqual(
      reasons,
      lengths.map(() => CUT),
    );
    await server.closed();
  });
}

test(
  'sends no further request when the deadline cuts off a discovery document without a length [RFC 9112 §8]',
  BOUNDED,
  async (context) => {
    const connect = context.mock.method(Socket.prototype, 'connect');
    const server = await start(context, (socket) =>
      speakTls(socket, (secure) => {
        connect.mock.resetCalls();
        const document = JSON.stringify({ issuer: source.issuer, jwks_uri: `${source.issuer}keys` });
        secure.write(`HTTP/1.1 200 OK\r\n\r\n${document}`);
      }),
    );
    const issuer = `https://localhost:${server.port}/`;
    const source = { domain: 'localhost', issuer, jwksUri: undefined };
    assert.deepEqual(await reasonAtDeadline(source, server), TIMEOUT);
    await server.closed();
    // Fetches of earlier tests in this process go to other ports.
    const ports = connect.mock.calls.map(({ arguments: [options] }) => Object([options].flat()[0]).port);
    assert.ok(!ports.includes(server.port), ports.join());
  },
);

test(
  'accepts the keys, and raises no unhandled error, when bytes that are not TLS follow each response [F11]',
  BOUNDED,
  async (context) => {
    const server = await start(context, (socket) => {
      // What the server writes in one piece reaches the client in one piece.
      const joined = new Duplex({
        read() {},
        write(chunk: Buffer, _, done) {
          socket.write(chunk);
          done();
        },
      });
      socket.on('data', (chunk) => joined.push(chunk));
      speakTls(joined as Socket, (secure) => {
        const document = JSON.stringify({ issuer, jwks_uri: `${issuer}keys`, keys: [] });
        socket.cork();
        secure.write(
          `HTTP/1.1 200 OK\r\nKeep-Alive: timeout=0\r\nContent-Length: ${document.length}\r\n\r\n${document}`,
          () => {
            socket.write('these are no record of TLS');
            socket.uncork();
          },
        );
      });
    });
    const issuer = `https://localhost:${server.port}/`;
    await assertOutcome({ domain: 'localhost', issuer, jwksUri: undefined }, 'keys');
    await server.closed();
  },
);

test(
  'fails at once when Node closes a request without a response or an error [F11]',
  BOUNDED,
  async (context) => {
    const server = await start(context, (socket) => speakTls(socket, () => {}));
    const end = (message: unknown) => (message as { request: ClientRequest }).request.emit('close');
    subscribe('http.client.request.start', end);
    context.after(() => unsubscribe('http.client.request.start', end));
    assert.deepEqual(await reasonOf(sourceOf(server)), ['connection-failed', '']);
  },
);

for (const place of ['directly', 'through a proxy'] as const) {
  test(
    `leaves no connection when Node throws instead of making the request, ${place} [F11]`,
    BOUNDED,
    async (context) => {
      const server = await start(context, (socket) => speakTls(socket, () => {}));
      const proxy = await startProxy();
      context.after(() => proxy.stop());
      // Node cannot decode this user.
      const source = sourceAt(`https://%ff@localhost:${server.port}/`);
      const address = place === 'directly' ? undefined : `http://127.0.0.1:${proxy.port}`;
      assert.deepEqual(await reasonOf(source, FAR_DEADLINE_MILLIS, address), ['unforeseen', '']);
      await server.closed();
      while (proxy.openSockets > 0) await new Promise(setImmediate);
    },
  );
}
