/* The connection to the provider through a forward proxy: the requests to it, its responses, and that nothing
   bypasses it. */
import assert from 'node:assert/strict';
import http, { Agent } from 'node:http';
import https, { Agent as SecureAgent } from 'node:https';
import type { Socket } from 'node:net';
import { after, afterEach, before, test, type TestContext } from 'node:test';
import type { FetchErrorReason } from '../../src/verify/base/events.ts';
import { startProvider, type Provider } from '../idp/provider.ts';
import { startProxy, type Proxy } from '../idp/proxy.ts';
import { cutTls, startRawServer, type RawServer } from '../idp/raw-server.ts';
import {
  closed,
  fetchKeys,
  reasonAtDeadline,
  reasonOf,
  keySetOf,
  kidsOf,
  restore,
  sourceAt,
  sourceOf,
} from '../verify/keys/fetch-fixture.ts';

let provider: Provider;
let proxy: Proxy;

before(async () => {
  [provider, proxy] = await Promise.all([startProvider(), startProxy()]);
});

after(() => Promise.all([provider.stop(), proxy.stop()]));
afterEach(() => restore(provider));

/** A test that waits for a deadline fails if the deadline does not pass. */
const BOUNDED = { timeout: 60_000 };
const SHORT_DEADLINE_MILLIS = 150;
const PASSWORD = 'pro%2Fxy%40%C3%B6';

const addressOf = ({ port }: { port: number }, userInfo = '') => `http://${userInfo}127.0.0.1:${port}/`;

/** The requests for tunnels since a moment. */
const askedSince = (count: number) => proxy.asked.slice(count);

/** A proxy that sends, byte for byte, what a test wants, after a request for a tunnel. */
async function startLiar(
  context: TestContext,
  response: (socket: Socket, request: string) => void,
): Promise<RawServer & { address: string }> {
  const server = await startRawServer((socket) => {
    socket.once('data', (bytes: Buffer) => response(socket, String(bytes)));
  });
  context.after(() => server.stop());
  return Object.assign(Object.create(server), { address: `http://localhost:${server.port}` });
}

test('fetches the discovery document and the key set through a tunnel each, and nothing outside these tunnels [RFC 9110 §9.3.6]', async () => {
  const before = proxy.asked.length;
  assert.deepEqual(kidsOf(await fetchKeys(sourceOf(provider), undefined, addressOf(proxy))), [
    provider.signingKey.kid,
  ]);
  const { domain } = provider;
  assert.deepEqual(
    askedSince(before).map(({ target, headers }) => [target, headers.host, headers['proxy-authorization']]),
    [
      [domain, domain, undefined],
      [domain, domain, undefined],
    ],
  );
  assert.equal(askedSince(before)[0]?.headers.authorization, undefined);
  const { discovery, keySet, connections } = provider.counts;
  assert.deepEqual([discovery, keySet, connections], [1, 1, 2]);
  await closed(provider);
  while (proxy.openSockets > 0) await new Promise(setImmediate);
});

test('does not use an agent of the whole process, such as one set by NODE_USE_ENV_PROXY', async (context) => {
  const refuse = () => assert.fail('the way of the process');
  const { globalAgent } = http;
  const { globalAgent: globalSecureAgent } = https;
  http.globalAgent = Object.assign(new Agent(), { createConnection: refuse });
  https.globalAgent = Object.assign(new SecureAgent(), { createConnection: refuse });
  context.after(() => {
    http.globalAgent = globalAgent;
    https.globalAgent = globalSecureAgent;
  });

  for (const address of [undefined, addressOf(proxy)]) {
    assert.deepEqual(kidsOf(await fetchKeys(sourceOf(provider), undefined, address)), [
      provider.signingKey.kid,
    ]);
  }
});

test('sends percent-decoded credentials to the proxy only [RFC 9110 §11.7.2, RFC 7617 §2]', async () => {
  const before = proxy.asked.length;
  await fetchKeys(sourceOf(provider), undefined, addressOf(proxy, `us%20er:${PASSWORD}@`));
  const basic = `Basic ${Buffer.from('us er:pro/xy@ö').toString('base64')}`;
  for (const { headers } of askedSince(before)) {
    assert.deepEqual([headers['proxy-authorization'], headers.authorization], [basic, undefined]);
  }
});

for (const userInfo of ['us%20er', 'us%20er:']) {
  test(`sends an empty password to the proxy for ${userInfo}@ [RFC 7617 §2]`, async () => {
    const before = proxy.asked.length;
    await fetchKeys(sourceOf(provider), undefined, addressOf(proxy, `${userInfo}@`));
    const basic = `Basic ${Buffer.from('us er:').toString('base64')}`;
    assert.deepEqual(
      askedSince(before).map(({ headers }) => headers['proxy-authorization']),
      [basic, basic],
    );
  });
}

for (const [address, target] of [
  ['https://idp.test/keys', 'idp.test:443'],
  ['https://idp.test:8443/keys', 'idp.test:8443'],
  ['https://[::1]/keys', '[::1]:443'],
] as const) {
  test(`asks for a tunnel to ${target} for ${address}, without resolving the name itself`, async (context) => {
    const heads: string[] = [];
    const liar = await startLiar(context, (socket, request) => {
      heads.push(request);
      socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
    });
    assert.deepEqual(await reasonOf(sourceAt(address), undefined, liar.address), ['proxy-refused', '403']);
    const [line, host] = heads[0]?.split('\r\n') ?? [];
    assert.deepEqual([heads.length, line, host], [1, `CONNECT ${target} HTTP/1.1`, `Host: ${target}`]);
  });
}

test('checks the certificate for the name of the provider [F8]', async () => {
  await provider.fault('all', 'wrong-host-certificate');
  assert.deepEqual(await reasonOf(sourceOf(provider), undefined, addressOf(proxy)), [
    'certificate-refused',
    'ERR_TLS_CERT_ALTNAME_INVALID',
  ]);
});

const OK = 'HTTP/1.1 200 OK\r\n\r\n';
const HANGS: [FetchErrorReason, string] = ['timeout', ''];

const refused = (status: number): [FetchErrorReason, string] => ['proxy-refused', String(status)];

const say = (text: string) => (socket: Socket) => void socket.write(text);

/** Sends a text byte by byte, for as long as anybody reads. */
const dribble = (text: string) => (socket: Socket) => {
  let index = 0;
  const timer = setInterval(() => {
    socket.write(text.charAt(index % text.length));
    index += 1;
  }, 5);
  socket.once('close', () => clearInterval(timer));
};

const LIES: [condition: string, response: (socket: Socket) => void, outcome: [FetchErrorReason, string]][] = [
  ...[100, 101, 199, 201, 204, 299, 301, 302, 400, 403, 407, 500, 502, 503].map(
    (status): (typeof LIES)[number] => [
      `answers ${status}`,
      say(`HTTP/1.1 ${status} X\r\nProxy-Authenticate: Basic\r\nLocation: http://localhost/\r\n\r\n`),
      refused(status),
    ],
  ),
  ['sends bytes with its 200', say(`${OK}x`), refused(200)],
  ['sends a body with its 200', say('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}'), refused(200)],
  ['answers twice', say(OK + OK), refused(200)],
  ['closes', (socket) => socket.end(), ['proxy-failed', 'ECONNRESET']],
  ['resets', (socket) => socket.resetAndDestroy(), ['proxy-failed', 'ECONNRESET']],
  ['closes within the head', (socket) => socket.end('HTTP/1.1 200 OK\r\n'), ['proxy-failed', 'ECONNRESET']],
  ['is no HTTP', say('SSH-2.0-x\r\n'), ['proxy-failed', 'HPE_INVALID_CONSTANT']],
  [
    'floods with fields',
    say(`HTTP/1.1 200 OK\r\n${'a: b\r\n'.repeat(100_000)}`),
    ['proxy-failed', 'HPE_HEADER_OVERFLOW'],
  ],
  [
    'floods with a field that never ends',
    say(`HTTP/1.1 200 OK\r\na: ${'b'.repeat(1_000_000)}`),
    ['proxy-failed', 'HPE_HEADER_OVERFLOW'],
  ],
  ['says nothing', () => {}, HANGS],
  ['never ends its head', say('HTTP/1.1 200 OK\r\n'), HANGS],
  ['dribbles', dribble('HTTP/1.1 200 OK\r\na: b\r\nc: d\r\ne: f\r\ng: hijklmnopqrstuvwxyz'), HANGS],
  ['says nothing in the tunnel', say(OK), HANGS],
  [
    'closes in the tunnel',
    (socket) => {
      socket.write(OK);
      socket.once('data', () => socket.end());
    },
    ['connection-failed', 'ECONNRESET'],
  ],
  [
    'speaks HTTP in the tunnel',
    (socket) => {
      socket.write(OK);
      socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"keys":[]}'));
    },
    ['connection-failed', 'EPROTO'],
  ],
  [
    'stalls in the middle of the handshake',
    (socket) => {
      socket.write(OK);
      cutTls(socket, 300, () => {});
    },
    HANGS,
  ],
];

for (const [condition, response, outcome] of LIES) {
  test(
    `fails with ${outcome[0]}, opens no further connection and leaves none open when the proxy ${condition} [F7, F11]`,
    BOUNDED,
    async (context) => {
      const liar = await startLiar(context, response);
      const source = sourceOf(provider);
      const reason =
        outcome === HANGS
          ? await reasonAtDeadline(source, liar, liar.address)
          : await reasonOf(source, undefined, liar.address);
      assert.deepEqual(reason, outcome);
      assert.deepEqual([liar.connections, provider.counts.connections], [1, 0]);
      await liar.closed();
    },
  );
}

test('fails with proxy-failed, without another connection, when nothing listens at the address of the proxy', async () => {
  const gone = await startRawServer(() => {});
  await gone.stop();
  const outcome = await reasonOf(sourceOf(provider), undefined, `http://localhost:${gone.port}`);
  assert.deepEqual(outcome, ['proxy-failed', 'ECONNREFUSED']);
  assert.equal(provider.counts.connections, 0);
});

test('has one deadline for both tunnels and both responses [F7]', BOUNDED, async () => {
  for (const place of ['discovery', 'keySet'] as const) await provider.fault(place, { delayMillis: 250 });
  assert.deepEqual(await reasonOf(sourceOf(provider), 400, addressOf(proxy)), ['timeout', '']);
  await closed(provider);
  while (proxy.openSockets > 0) await new Promise(setImmediate);
});

for (const fault of ['hang-before-headers', 'hang-after-headers', 'drip'] as const) {
  test(
    `fails with timeout and leaves no connection when the provider behind the proxy has the fault ${fault} [F7]`,
    BOUNDED,
    async () => {
      await provider.fault('keySet', fault);
      const source = sourceOf(provider, { jwksUri: keySetOf(provider) });
      assert.deepEqual(await reasonOf(source, SHORT_DEADLINE_MILLIS, addressOf(proxy)), ['timeout', '']);
      await closed(provider);
      while (proxy.openSockets > 0) await new Promise(setImmediate);
    },
  );
}
