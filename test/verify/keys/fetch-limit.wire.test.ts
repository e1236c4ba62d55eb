/* How much may be sent for one fetch: everything that provider and proxy send counts, not only bodies. */
import assert from 'node:assert/strict';
import dns from 'node:dns';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { describe, test, type TestContext } from 'node:test';
import type { KeySource } from '../../../src/verify/keys/fetch.ts';
import { identity, speakTls, startRawServer, type RawServer } from '../../idp/raw-server.ts';
import { floodWithRecords, type Record } from '../../idp/tls-flood.ts';
import { startProxy } from '../../idp/proxy.ts';
import { fetchKeys, reasonOf, sourceAt } from './fetch-fixture.ts';

const MAX_BYTES = 512 * 1024;
/** What the buffers of the system may hold that the fetch never reads. */
const MAX_SENT = 32 * MAX_BYTES;
/** A flood that is not cut off ends with this deadline, and so with another reason. */
const DEADLINE_MILLIS = 10_000;
const BOUNDED = { timeout: 60_000 };
const TOO_LARGE = ['too-large', ''];

async function start(context: TestContext, handle: (socket: Socket) => void): Promise<RawServer> {
  const server = await startRawServer(handle);
  context.after(() => server.stop());
  return server;
}

const sourceOf = ({ port }: RawServer): KeySource => sourceAt(`https://localhost:${port}/keys`);

const discovered = ({ port }: RawServer): KeySource => {
  const domain = `localhost:${port}`;
  return { domain, issuer: `https://${domain}/`, jwksUri: undefined };
};

/** Writes `start`, and then `piece` again and again until the connection is gone. */
function flood(stream: Socket, start: string, piece: string, sent = { bytes: 0 }): void {
  const pieces = Buffer.from(piece.repeat(Math.ceil(16_384 / piece.length)));

  const send = () => {
    if (stream.destroyed) return;
    sent.bytes += pieces.length;
    stream.write(pieces, () => setImmediate(send));
  };

  stream.write(start);
  send();
}

const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';

const FLOODS: readonly (readonly [what: string, start: string, piece: string])[] = [
  ['interim responses [RFC 9110 §15.2]', '', 'HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n'],
  ['responses 100 [RFC 9110 §15.2]', '', 'HTTP/1.1 100 Continue\r\n\r\n'],
  ['chunk extensions [RFC 9112 §7.1.1]', CHUNKED, `1;${'x'.repeat(8_000)}\r\n \r\n`],
  ['chunks of one byte [RFC 9112 §7.1]', CHUNKED, '1\r\n \r\n'],
  ['a body without a length', 'HTTP/1.1 200 OK\r\n\r\n', ' '],
  ['a body with a length', 'HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n', ' '],
];

const PROXY_FLOODS: readonly (readonly [what: string, start: string, piece: string, outcome: string[]])[] = [
  ['interim responses', '', 'HTTP/1.1 103 Wait\r\n\r\n', ['proxy-refused', '103']],
  ['fields', 'HTTP/1.1 200 OK\r\n', 'a: b\r\n', ['proxy-failed', 'HPE_HEADER_OVERFLOW']],
];

describe('the limit of 512 KiB', () => {
  for (const [what, first, piece] of FLOODS) {
    for (const place of ['directly', 'through a proxy'] as const) {
      test(`cuts off a provider that floods with ${what}, ${place} [F6]`, BOUNDED, async (context) => {
        const sent = { bytes: 0 };
        const server = await start(context, (socket) =>
          speakTls(socket, (secure) => flood(secure, first, piece, sent)),
        );
        const proxy = await startProxy();
        context.after(() => proxy.stop());
        const address = place === 'directly' ? undefined : `http://127.0.0.1:${proxy.port}`;
        assert.deepEqual(await reasonOf(sourceOf(server), DEADLINE_MILLIS, address), TOO_LARGE);
        assert.ok(sent.bytes < MAX_SENT, `${sent.bytes} bytes`);
        await server.closed();
      });
    }
  }

  test(
    'cuts off a flood of interim responses before the discovery document [F6]',
    BOUNDED,
    async (context) => {
      const [, first, piece] = FLOODS[0]!;
      const server = await start(context, (socket) =>
        speakTls(socket, (secure) => flood(secure, first, piece)),
      );
      assert.deepEqual(await reasonOf(discovered(server), DEADLINE_MILLIS), TOO_LARGE);
      await server.closed();
    },
  );

  for (const kind of ['ticket', 'key update'] satisfies Record[]) {
    test(
      `cuts off a flood of TLS records without data: ${kind} [RFC 9846 §4.6, F6]`,
      BOUNDED,
      async (context) => {
        const server = await start(context, (socket) => floodWithRecords(socket, identity, kind));
        assert.deepEqual(await reasonOf(sourceOf(server), DEADLINE_MILLIS), TOO_LARGE);
        await server.closed();
      },
    );
  }

  for (const [what, first, piece, outcome] of PROXY_FLOODS) {
    test(`cuts off a proxy that floods with ${what} [F6]`, BOUNDED, async (context) => {
      const sent = { bytes: 0 };
      const proxy = await start(context, (socket) =>
        socket.once('data', () => flood(socket, first, piece, sent)),
      );
      const source = sourceAt('https://localhost:1/keys');
      const reason = await reasonOf(source, DEADLINE_MILLIS, `http://localhost:${proxy.port}`);
      assert.deepEqual(reason, outcome);
      assert.ok(sent.bytes < MAX_SENT, `${sent.bytes} bytes`);
      await proxy.closed();
    });
  }

  test('cuts off a flood of TLS records before the handshake [RFC 9846 §5, F6]', BOUNDED, async (context) => {
    const record = '\x14\x03\x03\0\x01\x01';
    const server = await start(context, (socket) => socket.once('data', () => flood(socket, '', record)));
    const [reason] = await reasonOf(sourceOf(server), DEADLINE_MILLIS);
    assert.match(reason, /^(?:too-large|connection-failed|certificate-refused)$/);
    await server.closed();
  });
});

const interim = 'HTTP/1.1 103 Early Hints\r\nLink: </>\r\n\r\n';

/** A response of exactly so many bytes, framing included. */
const RESPONSES: { [what: string]: (bytes: number, document: object) => string } = {
  'a body with a length': (bytes, document) => {
    const head = 'HTTP/1.1 200 OK\r\nContent-Length: ######\r\n\r\n';
    const body = JSON.stringify(document).padEnd(bytes - head.length);
    return head.replace('######', String(body.length).padStart(6, '0')) + body;
  },
  'interim responses': (bytes, document) => {
    const rest = `HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n${JSON.stringify(document)}`;
    const count = Math.floor((bytes - rest.length) / interim.length);
    return interim.repeat(count) + rest.padEnd(bytes - count * interim.length);
  },
  'chunks, extensions and a trailer': (bytes, document) => {
    const body = JSON.stringify(document);
    const start = `${CHUNKED}${body.length.toString(16)}\r\n${body}\r\n`;
    const end = '0\r\nX-Checksum: 1\r\n\r\n';
    const piece = `1;${'x'.repeat(100)}\r\n \r\n`;
    const left = bytes - start.length - end.length;
    const count = Math.floor(left / piece.length) - 1;
    const last = `1;${'x'.repeat(left - count * piece.length - 7)}\r\n \r\n`;
    return start + piece.repeat(count) + last + end;
  },
};

for (const [what, makeResponse] of Object.entries(RESPONSES)) {
  const answer = (context: TestContext, bytes: number) =>
    start(context, (socket) => speakTls(socket, (secure) => secure.end(makeResponse(bytes, { keys: [] }))));

  test(
    `accepts a response of exactly 512 KiB in all, with ${what} [docs/keys.md]`,
    BOUNDED,
    async (context) => {
      const server = await answer(context, MAX_BYTES);
      assert.deepEqual((await fetchKeys(sourceOf(server))).keys, []);
    },
  );

  test(
    `refuses a response of one byte more than 512 KiB in all, with ${what} [F6]`,
    BOUNDED,
    async (context) => {
      const server = await answer(context, MAX_BYTES + 1);
      assert.deepEqual(await reasonOf(sourceOf(server)), TOO_LARGE);
      await server.closed();
    },
  );
}

for (const [condition, more, outcome] of [
  ['accepts a discovery document and a key set of together exactly 512 KiB', 0, 'keys'],
  ['refuses a discovery document and a key set of together one byte more than 512 KiB', 1, 'too-large'],
] as const) {
  test(`${condition}, directly, and with the response of the proxy [F6]`, BOUNDED, async (context) => {
    let spare = 0;
    const makeResponse = RESPONSES['a body with a length']!;
    const server = await start(context, (socket) =>
      speakTls(socket, (secure, request) => {
        const { issuer } = discovered(server);
        const isDiscovery = request.startsWith('GET /.well-known/');
        const bytes = isDiscovery ? MAX_BYTES / 2 : MAX_BYTES / 2 + more - spare;
        secure.end(makeResponse(bytes, { issuer, jwks_uri: `${issuer}keys`, keys: [] }));
      }),
    );
    const proxy = await startProxy();
    context.after(() => proxy.stop());

    for (const address of [undefined, `http://127.0.0.1:${proxy.port}`]) {
      spare = address === undefined ? 0 : 2 * 'HTTP/1.1 200 Connection established\r\n\r\n'.length;
      const fetched = fetchKeys(discovered(server), undefined, address);
      const end = await fetched.then(
        () => 'keys',
        ({ reason }) => reason,
      );
      assert.equal(end, outcome);
    }
  });
}

test(
  'opens no connection for the keys after a discovery document of more than 512 KiB [F6]',
  BOUNDED,
  async (context) => {
    const keys = await start(context, () => {});
    const server = await start(context, (socket) =>
      speakTls(socket, (secure) => {
        const { issuer } = discovered(server);
        const jwks_uri = `https://localhost:${keys.port}/`;
        secure.end(RESPONSES['a body with a length']!(MAX_BYTES + 1, { issuer, jwks_uri }));
      }),
    );
    assert.deepEqual(await reasonOf(discovered(server), DEADLINE_MILLIS), TOO_LARGE);
    assert.equal(keys.connections, 0);
  },
);

/** Writes a text in TLS records of one byte, which reach the client in one piece. */
function sendInBytes(socket: Socket, text: () => string): void {
  const records: Buffer[] = [];

  let keep = (record: Buffer) => void socket.write(record);

  const pipe = new Duplex({
    read() {},
    write(record: Buffer, _, done) {
      keep(record);
      done();
    },
  });

  socket.on('data', (chunk) => pipe.push(chunk));

  speakTls(pipe as Socket, async (secure) => {
    keep = (record) => void records.push(record);
    for (const byte of text()) await new Promise((sent) => secure.write(byte, sent));
    socket.write(Buffer.concat(records));
  });
}

for (const place of ['directly', 'through a proxy'] as const) {
  test(
    `counts the TLS records of discovery while the name in the address of the keys is looked up, ${place} [F6]`,
    BOUNDED,
    async (context) => {
      const server = await start(context, (socket) =>
        sendInBytes(socket, () =>
          RESPONSES['a body with a length']!(7_000, { issuer, jwks_uri: 'https://hangs.test/' }),
        ),
      );
      const { issuer } = discovered(server);
      const proxy = await startProxy();
      context.after(() => proxy.stop());
      const { lookup } = dns;
      const hang = (...args: Parameters<typeof lookup>) => args[0] === 'hangs.test' || lookup(...args);
      context.mock.method(dns, 'lookup', hang);
      const address = place === 'directly' ? undefined : `http://127.0.0.1:${proxy.port}`;
      assert.deepEqual(await reasonOf(discovered(server), DEADLINE_MILLIS, address), TOO_LARGE);
    },
  );
}
