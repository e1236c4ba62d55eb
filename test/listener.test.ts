/* The listener on the wire: requests that never reach a route, bodies, limits and the end (contract §3, §10). */
import { strict as assert } from 'node:assert';
import { EventEmitter, once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { describe, test, type TestContext } from 'node:test';
import { assemble } from '../src/app.ts';
import { createListener, type Listener } from '../src/listener.ts';
import { createLog } from '../src/log.ts';
import { exchange, openWire, type Wire } from './support/client.ts';
import { TestClock } from './support/clock.ts';
import { settingsFrom } from './support/service.ts';

const HOST = 'Host: api.test\r\n';
const GOOD = `GET /healthz HTTP/1.1\r\n${HOST}\r\n`;
const LAST = `GET /healthz HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`;
/** A request that the house keeps until the test lets it go on. */
const HELD = `GET /held HTTP/1.1\r\n${HOST}\r\n`;
const ORIGIN = 'https://app.test';

interface House extends Listener {
  readonly port: number;
  readonly logs: readonly Record<string, unknown>[];
  /** The server's side of every connection so far. */
  readonly sockets: readonly Socket[];
  /** Resolves with what answers the next `HELD` request. */
  held(): Promise<() => void>;
  beginStopping(): void;
  /** Resolves when every connection but those of `open` wires is gone. */
  gone(open?: number): Promise<void>;
}

/** A listening service without keys; `prepare` sees the server before it listens. */
async function openHouse(context: TestContext, prepare: (server: Server) => void = () => {}): Promise<House> {
  const settings = settingsFrom({ IDP_DOMAIN: 'idp.test', IDP_AUDIENCE: 'api', CORS_ALLOWED_ORIGINS: ORIGIN, LOG_LEVEL: 'debug' });
  const clock = new TestClock(Date.UTC(2030, 0, 1));
  const logs: Record<string, unknown>[] = [];
  const log = createLog(settings.logLevel, (line) => logs.push(JSON.parse(line)), clock.now);
  let isStopping = false;
  const { app } = assemble(settings, { clock, log, fetchKeys: () => new Promise(() => {}), isStopping: () => isStopping });
  const holder = new EventEmitter();
  const { server, stop } = createListener({
    ...app,
    answer: (request, response) => {
      if (request.url !== '/held') return app.answer(request, response);
      request.url = '/healthz';
      holder.emit('held', () => app.answer(request, response));
    },
  }, clock.now);
  prepare(server);
  const sockets: Socket[] = [];
  server.on('connection', (socket: Socket) => sockets.push(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.after(() => {
    server.close();
    server.closeAllConnections();
    for (const socket of sockets) socket.destroy();
  });
  const left = () => sockets.filter((socket) => !socket.closed);
  return {
    server, stop, logs, sockets,
    port: (server.address() as AddressInfo).port,
    held: async () => (await once(holder, 'held'))[0],
    beginStopping: () => { isStopping = true; },
    gone: async (open = 0) => { while (left().length > open) await Promise.race(left().map((socket) => new Promise((resolve) => socket.once('close', resolve)))); },
  };
}

interface RawAnswer { readonly status: number; readonly fields: ReadonlyMap<string, string>; readonly text: string }

/** The answers on a connection, each with as much content as its Content-Length says. */
function answersIn(received: string): RawAnswer[] {
  const answers: RawAnswer[] = [];
  for (let rest = received; rest !== '';) {
    const end = rest.indexOf('\r\n\r\n');
    assert.ok(end > 0, `not an answer: ${rest.slice(0, 100)}`);
    const [line = '', ...lines] = rest.slice(0, end).split('\r\n');
    const fields = new Map(lines.map((field) => [field.slice(0, field.indexOf(': ')).toLowerCase(), field.slice(field.indexOf(': ') + 2)]));
    assert.match(line, /^HTTP\/1\.1 \d{3} [A-Z]/);
    const length = Number(fields.get('content-length') ?? 0);
    answers.push({ status: Number(line.slice(9, 12)), fields, text: rest.slice(end + 4, end + 4 + length) });
    rest = rest.slice(end + 4 + length);
  }
  return answers;
}

const statusesIn = (received: string) => answersIn(received).map(({ status }) => status);

/** That the last (or only) answer is this refusal in the shape of every answer, and closes. */
function assertRefused(received: string, status: number, error: string, message: string, count = 1): void {
  const answers = answersIn(received);
  assert.equal(answers.length, count);
  const { status: found, fields, text } = answers[count - 1]!;
  assert.deepEqual([found, JSON.parse(text)], [status, { error, message }]);
  assert.equal(Object.keys(JSON.parse(text)).join(), 'error,message');
  const fixed = ['content-type', 'cache-control', 'x-content-type-options', 'connection'].map((name) => fields.get(name));
  assert.deepEqual(fixed, ['application/json; charset=utf-8', 'no-store', 'nosniff', 'close']);
  assert.ok(!Number.isNaN(Date.parse(fields.get('date') ?? '')));
}

const MALFORMED = 'the request is not well-formed HTTP';
const BAD_HOST = 'the request needs exactly one Host header field with a host and an optional port';
const BAD_TARGET = 'the request target is not a path';
const TOO_LARGE = 'The header fields of the request are too large';
const get = (fields: string, version = 'HTTP/1.1') => `GET /healthz ${version}\r\n${fields}\r\n`;
const post = (fields: string, body = '') => `POST /healthz HTTP/1.1\r\n${HOST}${fields}\r\n${body}`;

const NOT_HTTP: Readonly<Record<string, string>> = {
  'a TLS greeting': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
  'no request line': 'hello\r\n\r\n',
  'a version after 1.1': get(HOST, 'HTTP/1.2'),
  'an HTTP/2 preface': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'a lower-case version': get(HOST, 'http/1.1'),
  'an unknown method': `FETCH /healthz HTTP/1.1\r\n${HOST}\r\n`,
  'a space in the target': `GET /health z HTTP/1.1\r\n${HOST}\r\n`,
  'a null byte in the target': `GET /healthz\0 HTTP/1.1\r\n${HOST}\r\n`,
  'a byte over 127 in the target': `GET /\xe9 HTTP/1.1\r\n${HOST}\r\n`,
  'a null byte in a value': get(`${HOST}X: a\0b\r\n`),
  'a null byte in a name': get(`${HOST}X\0: a\r\n`),
  'a space before the colon': get('Host : api.test\r\n'),
  'a field without a colon': get(`${HOST}nothing\r\n`),
  'a folded line [RFC 9112 §5.2]': get(`${HOST}X: a\r\n b\r\n`),
  'a folded line with a tab': get(`${HOST}X: a\r\n\tb\r\n`),
  'a bare LF': get('Host: api.test\nX: a\r\n'),
  'a bare CR': get('Host: api.test\rX: a\r\n'),
  'two lengths [RFC 9112 §6.3]': post('Content-Length: 1\r\nContent-Length: 2\r\n', 'ab'),
  'two equal lengths': post('Content-Length: 1\r\nContent-Length: 1\r\n', 'a'),
  'a list of lengths': post('Content-Length: 1, 1\r\n', 'a'),
  'a length with chunking [RFC 9112 §6.1]': post('Content-Length: 5\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
  'chunking with a length': post('Transfer-Encoding: chunked\r\nContent-Length: 5\r\n', '0\r\n\r\n'),
  'chunking that is not the last coding': post('Transfer-Encoding: chunked, gzip\r\n', '0\r\n\r\n'),
  'a negative length': post('Content-Length: -1\r\n'),
  'a signed length': post('Content-Length: +1\r\n', 'a'),
  'a length that is not decimal': post('Content-Length: 0x1\r\n', 'a'),
  'an empty length': post('Content-Length:\r\n'),
};

const IMPOSSIBLE_HOSTS = [
  '', ' ', 'a b', 'a\tb', 'a/b', 'a/', '/a', 'a?b', 'a#b', 'a@b', 'user:pass@a', 'http://a', 'a,b', 'a, a', 'a;b', 'a\\b', '"a"', '<a>', '{a}', 'a|b',
  'a^b', 'a`b', '\xe9.test', 'a:b', 'a:-1', 'a:+1', 'a:8o', 'a:1:2', 'a:1/', 'a:123456', 'a:65536', 'a:99999', ':80', ':', '::1', '[::1', '::1]', '[]', '[]:80', '[::1]x',
  '[::1]:', '[::1]:x', '[zz]', '[:::]', '[1.2.3.4]', '[1:2]', '[::1%25lo]', '[a]b]',
];
const POSSIBLE_HOSTS = [
  'a', 'A.b-C_d.example', 'api.example.', 'localhost:8080', '127.0.0.1', '127.0.0.1:1', 'a:0', 'a:65535', '[::1]', '[::1]:8080', '[2001:DB8::a]', '[::ffff:1.2.3.4]:443',
];

describe('the listener', { timeout: 30_000 }, () => {
  test('refuses bytes that are not well-formed HTTP [RFC 9112 §2.2], and does not trouble its other callers', async (t) => {
    const house = await openHouse(t);
    const neighbour = await openWire(house.port);
    neighbour.send(GOOD);
    await neighbour.until((text) => text.endsWith('}'));
    for (const [what, bytes] of Object.entries(NOT_HTTP)) {
      await t.test(`refuses ${what}`, async () => {
        const received = await exchange(house.port, Buffer.from(bytes, 'latin1'));
        assertRefused(received, 400, 'invalid_request', MALFORMED);
        // RFC 9110 §6.6.1, by the clock of the service.
        assert.equal(answersIn(received)[0]?.fields.get('date'), 'Tue, 01 Jan 2030 00:00:00 GMT');
        assert.deepEqual(house.logs.at(-1)?.reason, 'malformed-http');
      });
    }
    neighbour.send(LAST);
    assert.deepEqual(statusesIn(await neighbour.untilClosed()), [200, 200]);
    await house.gone();
  });

  test('refuses a request whose Host is missing, repeated or impossible [RFC 9112 §3.2]', async (t) => {
    const house = await openHouse(t);
    const cases: Record<string, string> = {
      'no Host': get(''), 'no Host in HTTP/1.0': get('', 'HTTP/1.0'), 'no version': 'GET /healthz\r\n\r\n',
      'two Hosts': get(`${HOST}Host: other.test\r\n`), 'two equal Hosts': get(HOST + HOST), 'two Hosts in other cases': get(`${HOST}HOST: api.test\r\n`),
      'a good and an empty Host': get(`${HOST}Host:\r\n`), 'X-Forwarded-Host alone': get('X-Forwarded-Host: api.test\r\n'),
      'no Host at a path that does not exist': 'GET /nowhere HTTP/1.1\r\n\r\n', 'no Host with another method': 'PUT /healthz HTTP/1.1\r\n\r\n',
      'no Host on a preflight': `OPTIONS /healthz HTTP/1.1\r\nOrigin: ${ORIGIN}\r\nAccess-Control-Request-Method: GET\r\nConnection: close\r\n\r\n`,
      'two Hosts on a preflight': `OPTIONS /healthz HTTP/1.1\r\n${HOST}${HOST}Origin: ${ORIGIN}\r\nAccess-Control-Request-Method: GET\r\nConnection: close\r\n\r\n`,
      ...Object.fromEntries(IMPOSSIBLE_HOSTS.map((host) => [`Host ${JSON.stringify(host)}`, get(`Host: ${host}\r\nConnection: close\r\n`)])),
    };
    for (const [what, bytes] of Object.entries(cases)) {
      await t.test(`refuses ${what}`, async () => {
        assertRefused(await exchange(house.port, Buffer.from(bytes, 'latin1')), 400, 'invalid_request', BAD_HOST);
        assert.deepEqual(house.logs.at(-1)?.reason, 'host-refused');
      });
    }
    await house.gone();
  });

  test('takes every form of Host that can be [RFC 3986 §3.2.2]', async (t) => {
    const { port } = await openHouse(t);
    for (const host of POSSIBLE_HOSTS) {
      assert.deepEqual(statusesIn(await exchange(port, get(`hOST: ${host}\r\nConnection: close\r\n`))), [200], host);
    }
  });

  test('refuses a target that is not a path, and closes', async (t) => {
    const house = await openHouse(t);
    for (const line of ['GET http://api.test/healthz', 'OPTIONS *', 'CONNECT api.test:443', 'CONNECT api.test:443']) {
      assertRefused(await exchange(house.port, `${line} HTTP/1.1\r\n${HOST}\r\n`), 400, 'invalid_request', BAD_TARGET);
      assert.equal(house.logs.at(-1)?.reason, 'target-refused');
    }
    await house.gone();
  });

  test('refuses any other expectation than 100-continue [RFC 9110 §10.1.1]', async (t) => {
    const house = await openHouse(t);
    const received = await exchange(house.port, get(`${HOST}Expect: 200-ok\r\n`));
    assertRefused(received, 417, 'expectation_failed', 'The expectation of the request cannot be met');
    assert.equal(house.logs.at(-1)?.reason, 'expectation_failed');
    await house.gone();
  });

  test('says Vary: Origin also where no request was understood [contract §9]', async (t) => {
    const { port } = await openHouse(t);
    for (const bytes of ['garbage\r\n\r\n', `CONNECT api.test:443 HTTP/1.1\r\n${HOST}\r\n`, get(''), get(`${HOST}Expect: 200-ok\r\n`)]) {
      assert.equal(answersIn(await exchange(port, bytes))[0]?.fields.get('vary'), 'Origin', bytes);
    }
  });

  test('answers at once, without 100, a request that expects 100-continue [RFC 9110 §10.1.1]', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { port } = await openHouse(t);
    const wire = await openWire(port);
    wire.send(post('Content-Length: 5\r\nExpect: 100-continue\r\n'));
    await wire.until((text) => text.endsWith('}'));
    wire.send('hello');
    const [answer, ...others] = answersIn(await wire.untilClosed());
    assert.deepEqual([answer?.status, answer?.fields.get('connection'), others], [405, 'close', []]);
  });

  test('ignores an offer to upgrade [RFC 9110 §7.8], and keeps the connection', async (t) => {
    const { port } = await openHouse(t);
    for (const offer of ['websocket', 'h2c', 'TLS/1.2']) {
      const wire = await openWire(port);
      wire.send(get(`${HOST}Connection: Upgrade\r\nUpgrade: ${offer}\r\n`));
      await wire.until((text) => text.endsWith('}'));
      wire.send(LAST);
      assert.deepEqual(statusesIn(await wire.untilClosed()), [200, 200]);
    }
  });

  test('refuses header fields of more than 16 KiB [RFC 6585 §5]', async (t) => {
    const house = await openHouse(t);
    assert.equal(Reflect.get(house.server, 'maxHeaderSize'), 16_384);
    const withField = (length: number) => get(`${HOST}Connection: close\r\nX: ${'x'.repeat(length)}\r\n`);
    assert.deepEqual(statusesIn(await exchange(house.port, withField(16_000))), [200]);
    const tooLarge = [withField(16_384), get(`${HOST}${'x'.repeat(16_384)}: a\r\n`), `GET /${'x'.repeat(16_384)} HTTP/1.1\r\n${HOST}\r\n`];
    for (const bytes of tooLarge) assertRefused(await exchange(house.port, bytes), 431, 'header_fields_too_large', TOO_LARGE);
    assert.equal(house.logs.at(-1)?.reason, 'header_fields_too_large');
    await house.gone();
  });

  test('looks at every header field, also after the 2,000th', async (t) => {
    const { port, logs } = await openHouse(t);
    const fields = `${HOST}Connection: close\r\nAuthorization: Bearer a\r\n${'x:\r\n'.repeat(2_500)}`;
    const ask = (more: string) => exchange(port, `GET /api/private HTTP/1.1\r\n${fields}${more}\r\n`);
    assert.deepEqual([statusesIn(await ask('')), logs.at(-1)?.reason], [[401], 'token-malformed']);
    assert.deepEqual([statusesIn(await ask('Authorization: Bearer b\r\n')), logs.at(-1)?.reason], [[400], 'authorization-repeated']);
  });

  test('times out a header that does not come [RFC 9110 §15.5.9]', async (t) => {
    const house = await openHouse(t, (server) => {
      server.headersTimeout = 1;
      Object.assign(server, { connectionsCheckingInterval: 10 });
    });
    for (const begun of ['GET', 'GET /healthz HTTP/1.1\r\nHos', `GET /healthz HTTP/1.1\r\n${HOST}`]) {
      assertRefused(await exchange(house.port, begun), 408, 'request_timeout', 'The request did not arrive in time');
      assert.equal(house.logs.at(-1)?.reason, 'request_timeout');
    }
    await house.gone();
  });

  test('has the limits of the contract [§10]', async (t) => {
    const { server } = await openHouse(t);
    const { headersTimeout, requestTimeout, keepAliveTimeout, connectionsCheckingInterval, maxRequestsPerSocket } = server as Server & { connectionsCheckingInterval: number };
    assert.deepEqual({ headersTimeout, requestTimeout, keepAliveTimeout, connectionsCheckingInterval, maxRequestsPerSocket },
      { headersTimeout: 10_000, requestTimeout: 15_000, keepAliveTimeout: 72_000, connectionsCheckingInterval: 1_000, maxRequestsPerSocket: 0 });
  });
});

describe('a connection with several requests', { timeout: 30_000 }, () => {
  test('answers a good request before it refuses the garbage behind it', async (t) => {
    const { port } = await openHouse(t);
    const received = await exchange(port, `${GOOD}garbage\r\n\r\n`);
    assertRefused(received, 400, 'invalid_request', MALFORMED, 2);
    assert.deepEqual(statusesIn(received), [200, 400]);
  });

  test('refuses garbage on a connection that has been used', async (t) => {
    const { port } = await openHouse(t);
    const wire = await openWire(port);
    wire.send(GOOD);
    await wire.until((text) => text.endsWith('}'));
    wire.send('garbage\r\n\r\n');
    assertRefused(await wire.untilClosed(), 400, 'invalid_request', MALFORMED, 2);
  });

  test('waits with the refusal until the request before the garbage is answered', async (t) => {
    const house = await openHouse(t);
    const arrival = house.held();
    const received = exchange(house.port, `${HELD}garbage\r\n\r\n`);
    (await arrival)();
    assert.deepEqual(statusesIn(await received), [200, 400]);
  });

  test('waits with the refusal until every request before the garbage is answered', async (t) => {
    const house = await openHouse(t);
    const arrival = house.held();
    // The second one has its answer at once, which waits behind the first.
    const received = exchange(house.port, `${HELD}GET /nowhere HTTP/1.1\r\n${HOST}\r\ngarbage\r\n\r\n`);
    const answer = await arrival;
    await new Promise(setImmediate);
    answer();
    assert.deepEqual(statusesIn(await received), [200, 404, 400]);
  });

  test('remembers the request under way when an earlier one is done', async (t) => {
    const house = await openHouse(t);
    const wire = await openWire(house.port);
    const answers: (() => void)[] = [];
    for (let count = 0; count < 2; count += 1) {
      const arrival = house.held();
      wire.send(HELD);
      answers.push(await arrival);
    }
    answers[0]!();
    await wire.until((text) => text.endsWith('}'));
    const broken = once(house.server, 'clientError');
    wire.send('garbage\r\n\r\n');
    await broken;
    answers[1]!();
    assert.deepEqual(statusesIn(await wire.untilClosed()), [200, 200, 400]);
  });

  test('refuses garbage once, however much of it comes', async (t) => {
    const house = await openHouse(t);
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on('warning', note);
    t.after(() => process.off('warning', note));
    const wire = await openWire(house.port);
    const arrival = house.held();
    wire.send(HELD);
    const answer = await arrival;
    const [socket] = house.sockets;
    for (let count = 0; count < 12; count += 1) {
      // Each piece must reach the parser by itself.
      const before = socket!.bytesRead;
      wire.send('garbage\r\n\r\n');
      while (socket!.bytesRead === before && !socket!.destroyed) await new Promise(setImmediate);
    }
    answer();
    assert.deepEqual(statusesIn(await wire.untilClosed()), [200, 400]);
    await new Promise(setImmediate);
    assert.deepEqual(warnings, []);
    assert.equal(house.logs.filter(({ reason }) => reason === 'malformed-http').length, 1);
  });

  test('survives callers that go away in the middle', async (t) => {
    const house = await openHouse(t);
    for (const bytes of ['', 'GET /heal', GOOD, post('Content-Length: 9\r\n', 'abc'), HELD]) {
      const wire = await openWire(house.port);
      const arrival = bytes === HELD ? house.held() : undefined;
      wire.send(bytes);
      await arrival;
      wire.socket.resetAndDestroy();
    }
    await house.gone();
    assert.deepEqual(statusesIn(await exchange(house.port, LAST)), [200]);
  });

  test('lets a refused caller read before the connection is gone, for one second', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const house = await openHouse(t);
    for (const bytes of ['garbage\r\n\r\n', `CONNECT api.test:443 HTTP/1.1\r\n${HOST}\r\n`]) {
      const wire = await openWire(house.port);
      wire.socket.allowHalfOpen = true;
      wire.send(bytes);
      assert.deepEqual(statusesIn(await wire.untilClosed()), [400]);
      const socket = house.sockets.at(-1)!;
      t.mock.timers.tick(999);
      assert.equal(socket.destroyed, false);
      t.mock.timers.tick(1);
      assert.equal(socket.destroyed, true);
      wire.destroy();
    }
  });

  test('ends with a refused caller that closes its side, without waiting', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const house = await openHouse(t);
    for (const bytes of ['garbage\r\n\r\n', `CONNECT api.test:443 HTTP/1.1\r\n${HOST}\r\n and more`]) {
      assert.deepEqual(statusesIn(await exchange(house.port, bytes)), [400]);
      await house.gone();
    }
  });
});

describe('a request body', { timeout: 30_000 }, () => {
  const MEBIBYTE = 1024 * 1024;

  test('is answered before it comes, and the connection ends with it', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const house = await openHouse(t);
    const preflight = `OPTIONS /healthz HTTP/1.1\r\n${HOST}Origin: ${ORIGIN}\r\nAccess-Control-Request-Method: GET\r\nContent-Length: 5\r\n\r\n`;
    const cases: [string, string, number][] = [
      [`GET /healthz HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\n`, 'hello', 200],
      [`GET /healthz HTTP/1.1\r\n${HOST}Content-Length: 05\r\n\r\n`, 'hello', 200],
      [`HEAD /healthz HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\n`, 'hello', 200],
      [post('Content-Length: 5\r\n'), 'hello', 405],
      [post('Transfer-Encoding: chunked\r\n'), '5\r\nhello\r\n0\r\n\r\n', 405],
      [`GET /api/private HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\n`, 'hello', 401],
      [`GET /nowhere HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\n`, 'hello', 404],
      [preflight, 'hello', 204],
    ];
    for (const [head, body, status] of cases) {
      const wire = await openWire(house.port);
      wire.send(head);
      const received = await wire.until((text) => text.endsWith('}') || /^(?:HTTP\/1.1 204|(?!.*\{))[^]*\r\n\r\n$/.test(text));
      assert.match(received, new RegExp(`^HTTP/1\\.1 ${status} [^]*\\r\\nConnection: close\\r\\n`));
      wire.send(body);
      assert.equal(await wire.untilClosed(), received);
    }
    await house.gone();
  });

  test('of no bytes keeps the connection', async (t) => {
    const { port } = await openHouse(t);
    assert.deepEqual(statusesIn(await exchange(port, GOOD + post('Content-Length: 0\r\n') + post('') + LAST)), [200, 405, 405, 200]);
  });

  test('that does not come ends the connection after one second', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const house = await openHouse(t);
    const wire = await openWire(house.port);
    wire.send(post('Content-Length: 5\r\n', 'hell'));
    await wire.until((text) => text.endsWith('}'));
    t.mock.timers.tick(999);
    for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
    assert.equal(house.sockets[0]!.writableEnded, false);
    t.mock.timers.tick(1);
    assert.deepEqual(statusesIn(await wire.untilClosed()), [405]);
    await house.gone();
  });

  test('is drained up to one mebibyte and no further', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const house = await openHouse(t);
    let drained = 0;
    const progress = new EventEmitter();
    house.server.on('request', (request) => request.on('data', (chunk: Buffer) => {
      drained += chunk.length;
      if (drained === MEBIBYTE) progress.emit('full');
    }));
    const full = once(progress, 'full');
    const wire = await openWire(house.port);
    wire.send(post('Content-Length: 5000000\r\n'));
    wire.send(Buffer.alloc(MEBIBYTE));
    await full;
    await new Promise(setImmediate);
    assert.equal(house.sockets[0]!.writableEnded, false);
    wire.send('x');
    assert.deepEqual(statusesIn(await wire.untilClosed()), [405]);
    await house.gone();
  });

  test('of 5 MB that keeps coming does not cost the answer', async (t) => {
    const house = await openHouse(t);
    const received = await exchange(house.port, Buffer.concat([Buffer.from(post('Content-Length: 5000000\r\n')), Buffer.alloc(5_000_000)]));
    const [answer, ...others] = answersIn(received);
    assert.deepEqual([answer?.status, answer?.text, others],
      [405, '{"error":"method_not_allowed","message":"Only GET and HEAD are supported here"}', []]);
    await house.gone();
  });

  test('in chunks without end is cut off', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const house = await openHouse(t);
    const wire = await openWire(house.port);
    const chunk = Buffer.concat([Buffer.from('10000\r\n'), Buffer.alloc(0x10000), Buffer.from('\r\n')]);
    const pour = () => { if (wire.socket.writable) wire.socket.write(chunk, pour); };
    wire.send(post('Transfer-Encoding: chunked\r\n'));
    pour();
    assert.deepEqual(statusesIn(await wire.untilClosed()), [405]);
    await house.gone();
  });

  test('with broken chunks ends the connection with the one answer', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const house = await openHouse(t);
    const wire = await openWire(house.port);
    wire.send(post('Transfer-Encoding: chunked\r\n', '5\r\nhello\r\n'));
    await wire.until((text) => text.endsWith('}'));
    wire.send('broken\r\n');
    assert.deepEqual(statusesIn(await wire.untilClosed()), [405]);
    await house.gone();
  });
});

describe('the end', { timeout: 30_000 }, () => {
  /** A connection that has had an answer and could have another. */
  async function idleWire(port: number): Promise<Wire> {
    const wire = await openWire(port);
    wire.send(GOOD);
    await wire.until((text) => text.endsWith('}'));
    return wire;
  }

  test('says Connection: close on every answer while stopping [RFC 9112 §9.6]', async (t) => {
    const house = await openHouse(t);
    house.beginStopping();
    const preflight = `OPTIONS /healthz HTTP/1.1\r\n${HOST}Origin: ${ORIGIN}\r\nAccess-Control-Request-Method: GET\r\n\r\n`;
    const requests: [string, number][] = [
      [GOOD, 200], [`HEAD /healthz HTTP/1.1\r\n${HOST}\r\n`, 200], [preflight, 204], [`GET /api/private HTTP/1.1\r\n${HOST}\r\n`, 401],
      [`GET /nowhere HTTP/1.1\r\n${HOST}\r\n`, 404], [post(''), 405], [`GET /readyz HTTP/1.1\r\n${HOST}\r\n`, 503], ['garbage\r\n\r\n', 400],
    ];
    for (const [bytes, status] of requests) {
      assert.match(await exchange(house.port, bytes), new RegExp(`^HTTP/1\\.1 ${status} [^]*\\r\\nConnection: close\\r\\n`));
    }
  });

  test('takes no new connections', async (t) => {
    const house = await openHouse(t);
    const stopped = house.stop();
    await assert.rejects(openWire(house.port), { code: 'ECONNREFUSED' });
    assert.equal(await stopped, 'drained');
  });

  test('closes connections with no request under way after one second, not at once', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const house = await openHouse(t);
    const [idle, asking, silent, unused] = [await idleWire(house.port), await idleWire(house.port), await openWire(house.port), await openWire(house.port)];
    while (house.sockets.length < 4) await once(house.server, 'connection');
    const stopped = house.stop();
    t.mock.timers.tick(999);
    // What is asked in the last moment is answered, on a used connection and on one that was never used.
    for (const wire of [asking, silent]) wire.send(LAST);
    assert.deepEqual(statusesIn(await asking.untilClosed()), [200, 200]);
    assert.deepEqual(statusesIn(await silent.untilClosed()), [200]);
    await house.gone(2);
    assert.deepEqual(house.sockets.map(({ destroyed }) => destroyed), [false, true, true, false]);
    t.mock.timers.tick(1);
    assert.deepEqual(statusesIn(await idle.untilClosed()), [200]);
    assert.equal(await unused.untilClosed(), '');
    assert.equal(await stopped, 'drained');
  });

  test('answers requests under way, and those half arrived, after the idle connections are closed', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const house = await openHouse(t);
    const [busy, half] = [await openWire(house.port), await openWire(house.port)];
    const arrival = house.held();
    busy.send(HELD);
    const answer = await arrival;
    half.send(GOOD.slice(0, 20));
    while (house.sockets[1]?.bytesRead !== 20) await new Promise(setImmediate);
    house.beginStopping();
    const stopped = house.stop();
    t.mock.timers.tick(9_999);
    half.send(GOOD.slice(20));
    assert.deepEqual(statusesIn(await half.untilClosed()), [200]);
    answer();
    assert.deepEqual(statusesIn(await busy.untilClosed()), [200]);
    assert.equal(await stopped, 'drained');
  });

  test('is not held up beyond ten seconds by a request that does not end', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const house = await openHouse(t);
    const [busy, half] = [await openWire(house.port), await openWire(house.port)];
    const arrival = house.held();
    busy.send(HELD);
    await arrival;
    half.send('GET');
    while (house.sockets[1]?.bytesRead !== 3) await new Promise(setImmediate);
    let outcome = 'waiting';
    const stopped = house.stop().then((how) => { outcome = how; });
    t.mock.timers.tick(9_999);
    await new Promise(setImmediate);
    assert.deepEqual([outcome, ...house.sockets.map(({ destroyed }) => destroyed)], ['waiting', false, false]);
    t.mock.timers.tick(1);
    await stopped;
    assert.equal(outcome, 'deadline');
    assert.deepEqual([await busy.untilClosed(), await half.untilClosed()], ['', '']);
    await house.gone();
  });
});
