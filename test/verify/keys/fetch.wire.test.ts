/* Where the key set is fetched from, and how. Which responses are accepted: fetch-faults.wire.test.ts. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import { after, afterEach, before, test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { ByteLimit } from '../../../src/verify/keys/byte-limit.ts';
import { connectDirectly } from '../../../src/verify/keys/fetch.ts';
import { startProvider, type Provider } from '../../idp/provider.ts';
import { startProxy } from '../../idp/proxy.ts';
import { startRawServer, type RawServer } from '../../idp/raw-server.ts';
import {
  createKeyFetcher,
  connectThrough,
  fetchKeys,
  reasonOf,
  keySetOf,
  kidsOf,
  restore,
  sourceOf,
  startServer,
} from './fetch-fixture.ts';

const { version: packageVersion } = JSON.parse(
  readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
);

let provider: Provider;
let other: Provider;

before(async () => {
  [provider, other] = await Promise.all([startProvider(), startProvider()]);
});

after(() => Promise.all([provider.stop(), other.stop()]));
afterEach(() => Promise.all([restore(provider), restore(other)]));

/** A server that answers every path from `documents`, or else with 404, and the requested paths. */
async function startDocuments(
  context: TestContext,
  documents: (domain: string) => Record<string, object>,
): Promise<{ domain: string; paths: string[] }> {
  const paths: string[] = [];
  const { domain } = await startServer(context, ({ url = '' }, response) => {
    paths.push(url);
    const document = documents(domain)[url];
    response.writeHead(document === undefined ? 404 : 200).end(JSON.stringify(document));
  });
  return { domain, paths };
}

/** A plain HTTP URL, and whether anybody connected. */
async function startPlain(context: TestContext): Promise<{ address: string; server: RawServer }> {
  const server = await startRawServer((socket) => socket.resume());
  context.after(() => server.stop());
  return { address: `http://localhost:${server.port}/`, server };
}

test('fetches the key set that the discovery document names, over a new connection [OpenID Connect Discovery §4]', async () => {
  assert.deepEqual(kidsOf(await fetchKeys(sourceOf(provider))), [provider.signingKey.kid]);
  const { discovery, keySet, connections } = provider.counts;
  assert.deepEqual([discovery, keySet, connections], [1, 1, 2]);
});

test('fetches from the configured URL without discovery', async () => {
  assert.deepEqual(kidsOf(await fetchKeys(sourceOf(provider, { jwksUri: keySetOf(provider) }))), [
    provider.signingKey.kid,
  ]);
  assert.deepEqual([provider.counts.discovery, provider.counts.connections], [0, 1]);
});

test('discovers the URL anew at every fetch', async () => {
  const fetcher = createKeyFetcher(sourceOf(provider), undefined);
  await fetcher();
  provider.discoveryDocument({ jwks_uri: keySetOf(other) });
  assert.deepEqual(kidsOf(await fetcher()), [other.signingKey.kid]);
});

const DISCOVERY: [condition: string, path: string][] = [
  ['with a path and a trailing slash', '/tenant/v2/'],
  ['with a path and no trailing slash', '/tenant/v2'],
  ['with a path and two trailing slashes, of which one is removed', '/tenant//'],
  ['that is the bare domain without trailing slash', ''],
];

for (const [condition, path] of DISCOVERY) {
  test(`looks for the discovery document below an issuer ${condition} [OpenID Connect Discovery §4.1]`, async (context) => {
    const discovery = `${path.replace(/\/$/, '')}/.well-known/openid-configuration`;
    const { domain, paths } = await startDocuments(context, (domain) => ({
      [discovery]: { issuer: `https://${domain}${path}`, jwks_uri: `https://${domain}/keys?x=1` },
      '/keys?x=1': { keys: [{ kid: 'a' }] },
    }));
    assert.deepEqual(
      kidsOf(await fetchKeys(sourceOf(provider, { domain, issuer: `https://${domain}${path}` }))),
      ['a'],
    );
    assert.deepEqual(paths, [discovery, '/keys?x=1']);
  });
}

test('falls back to the default URL on the domain when there is no discovery document', async () => {
  await provider.fault('discovery', { status: 404 });
  assert.deepEqual(kidsOf(await fetchKeys(sourceOf(provider, { domain: other.domain }))), [
    other.signingKey.kid,
  ]);
  assert.deepEqual([provider.counts.discovery, provider.counts.keySet], [1, 0]);
});

test('does not fall back when the URL that discovery names has no document', async () => {
  await provider.fault('keySet', { status: 404 });
  assert.deepEqual(await reasonOf(sourceOf(provider, { domain: other.domain })), ['status-refused', '404']);
  assert.equal(other.counts.connections, 0);
});

const ISSUERS: [condition: string, change: (issuer: string) => Record<string, unknown>][] = [
  ['names another issuer', () => ({ issuer: 'https://wrong.test/' })],
  ['does not have the trailing slash of the issuer', (issuer) => ({ issuer: issuer.slice(0, -1) })],
  ['has the issuer in another case', (issuer) => ({ issuer: issuer.toUpperCase() })],
  ['has the issuer in an array', (issuer) => ({ issuer: [issuer] })],
  ['names no issuer', () => ({ issuer: undefined })],
];

for (const [condition, change] of ISSUERS) {
  test(`refuses a discovery document that ${condition}, and says which it names [OpenID Connect Discovery §4.3]`, async () => {
    provider.discoveryDocument(change(provider.issuer));
    const { issuer = '' } = change(provider.issuer);
    const named = typeof issuer === 'string' ? issuer : '';
    assert.deepEqual(await reasonOf(sourceOf(provider)), ['issuer-mismatch', named]);
    assert.equal(provider.counts.keySet, 0);
  });
}

const withUser = (user: string) => keySetOf(provider).replace('//', `//${user}@`);

const ADDRESSES: [condition: string, address: (plain: string) => unknown][] = [
  ['without jwks_uri', () => undefined],
  ['whose jwks_uri is plain http', (plain) => plain],
  ['whose jwks_uri has another scheme', () => 'file:///etc/passwd'],
  ['whose jwks_uri has a scheme that only begins like https', () => 'httpsx://localhost/'],
  ['whose jwks_uri is plain http with an https URL in its query', (plain) => `${plain}?https://localhost/`],
  ['whose jwks_uri is https without a host', () => 'https://'],
  ['whose jwks_uri is a data URL', () => 'data:application/json,{"keys":[]}'],
  ['whose jwks_uri is relative', () => '/.well-known/jwks.json'],
  ['whose jwks_uri is empty', () => ''],
  ['whose jwks_uri is an array', () => [keySetOf(provider)]],
  ['whose jwks_uri has a user and a password [RFC 9110 §4.2.4]', () => withUser('user:secret')],
  ['whose jwks_uri has a user that cannot be decoded [RFC 9110 §4.2.4]', () => withUser('%ff')],
  ['whose jwks_uri has a password alone [RFC 9110 §4.2.4]', () => withUser(':secret')],
  ['whose jwks_uri has 2,001 characters', () => keySetOf(provider).padEnd(2_001, '?')],
];

for (const [condition, address] of ADDRESSES) {
  test(`refuses a discovery document ${condition}`, async (context) => {
    const plain = await startPlain(context);
    provider.discoveryDocument({ jwks_uri: address(plain.address) });
    assert.deepEqual(await reasonOf(sourceOf(provider)), ['address-refused', '']);
    assert.equal(plain.server.connections, 0);
  });
}

test('accepts a URL of 2,000 characters', async () => {
  provider.discoveryDocument({ jwks_uri: keySetOf(provider).padEnd(2_000, '?') });
  assert.deepEqual(kidsOf(await fetchKeys(sourceOf(provider))), [provider.signingKey.kid]);
});

test('accepts a URL whose scheme is in capital letters', async () => {
  provider.discoveryDocument({ jwks_uri: keySetOf(provider).replace('https', 'HTTPS') });
  assert.deepEqual(kidsOf(await fetchKeys(sourceOf(provider))), [provider.signingKey.kid]);
});

test('opens no connection to a plain http URL [F5]', async (context) => {
  const { address, server } = await startPlain(context);
  for (const from of [sourceOf(provider, { jwksUri: address }), sourceOf(provider, { issuer: address })]) {
    assert.deepEqual(await reasonOf(from), ['connection-failed', 'ERR_INVALID_PROTOCOL']);
  }
  assert.equal(server.connections, 0);
});

/** A provider that sends `body` if the request is as it wants, and otherwise what `refuse` sends. */
type Wants = readonly [
  what: string,
  isWanted: (headers: IncomingHttpHeaders) => boolean,
  refuse: (response: ServerResponse, body: string) => void,
];

const acceptsKeySets = ({ accept = '' }: IncomingHttpHeaders) =>
  accept.split(/, */).includes('application/jwk-set+json');

const WANTS: readonly Wants[] = [
  [
    'behind a firewall that answers 403 without User-Agent [RFC 9110 §10.1.5]',
    (headers) => /^gatehouse\/\d+\.\d+\.\d+$/.test(headers['user-agent'] ?? ''),
    (response) => response.writeHead(403, { 'Content-Type': 'text/html' }).end('<h1>Forbidden</h1>'),
  ],
  [
    'that answers 406 unless application/jwk-set+json is accepted, like an API server of Kubernetes [RFC 9110 §12.5.1, RFC 7517 §8.5.1]',
    (headers) => acceptsKeySets(headers) || headers.accept === undefined,
    (response) => response.writeHead(406).end(),
  ],
  [
    'that answers 406 unless application/json is accepted [RFC 9110 §12.5.1]',
    ({ accept = '' }) => accept.split(/, */).includes('application/json'),
    (response) => response.writeHead(406).end(),
  ],
  [
    'that sends what it stored compressed unless only identity is accepted [RFC 9110 §12.5.3]',
    (headers) => headers['accept-encoding'] === 'identity',
    (response, body) => response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(gzipSync(body)),
  ],
];

for (const [what, isWanted, refuse] of WANTS) {
  test(`fetches discovery document and keys from a provider ${what}`, async (context) => {
    const { domain } = await startServer(context, ({ headers }, response) => {
      const document = {
        issuer: `https://${domain}/`,
        jwks_uri: `https://${domain}/keys`,
        keys: [{ kid: 'a' }],
      };
      const body = JSON.stringify(document);
      if (isWanted(headers)) response.end(body);
      else refuse(response, body);
    });
    const source = { domain, issuer: `https://${domain}/`, jwksUri: undefined };
    assert.deepEqual(kidsOf(await fetchKeys(source)), ['a']);
  });
}

test('sends the same fields for discovery and keys, at every fetch, directly and through a proxy [RFC 9110 §10.1.5, §12.5]', async (context) => {
  const requests: unknown[] = [];
  const { domain } = await startServer(context, ({ method, headers, url }, response) => {
    requests.push([method, url, headers]);
    const document = { issuer: `https://${domain}/`, jwks_uri: `https://${domain}/keys`, keys: [] };
    response.end(JSON.stringify(document));
  });
  const proxy = await startProxy();
  context.after(() => proxy.stop());

  const fields = {
    host: domain,
    'user-agent': `gatehouse/${packageVersion}`,
    accept: 'application/json, application/jwk-set+json',
    'accept-encoding': 'identity',
    connection: 'close',
  };
  const expected = ['/.well-known/openid-configuration', '/keys'].map((url) => ['GET', url, fields]);
  const source = { domain, issuer: `https://${domain}/`, jwksUri: undefined };
  for (const connect of [undefined, connectThrough(`http://127.0.0.1:${proxy.port}`)]) {
    const fetcher = createKeyFetcher(source, connect);
    for (const _ of ['first', 'refresh']) {
      await fetcher();
      assert.deepEqual(requests.splice(0), expected);
    }
  }
  assert.ok(proxy.asked.every(({ headers }) => !('accept' in headers)));
});

/** The outcome of a fetch in another process with these variables and no others. */
async function endInProcess(variables: Record<string, string>): Promise<string> {
  const fetchModule = new URL('../../../dist/verify/keys/fetch.js', import.meta.url).href;
  const script = `import { KeyFetch } from ${JSON.stringify(fetchModule)};
    const fetched = new KeyFetch({ domain: '', issuer: '', jwksUri: process.env.ADDRESS }).fetch(AbortSignal.timeout(5_000));
    console.log(await fetched.then(() => 'fetched', ({ reason }) => reason));`;
  const { PATH = '' } = process.env;
  const env = { PATH, ADDRESS: keySetOf(provider), ...variables };
  const args = ['--input-type=module', '--eval', script];
  return (await promisify(execFile)(process.execPath, args, { env })).stdout.trim();
}

test('checks certificates even with NODE_TLS_REJECT_UNAUTHORIZED=0 [F8]', async () => {
  const off = { NODE_TLS_REJECT_UNAUTHORIZED: '0' };
  const trusted = { ...off, NODE_EXTRA_CA_CERTS: provider.authorityFile };
  assert.deepEqual(await Promise.all([trusted, off].map(endInProcess)), ['fetched', 'certificate-refused']);
});

test('refuses a body framed in two ways even if NODE_OPTIONS asks for the insecure parser [RFC 9112 §6.3]', async (context) => {
  const { domain } = await startServer(context, (_, { socket }) => {
    const head = 'HTTP/1.1 200 OK\r\nContent-Length: 11\r\nTransfer-Encoding: chunked\r\n\r\n';
    socket?.end(`${head}b\r\n{"keys":[]}\r\n0\r\n\r\n`);
  });
  const end = await endInProcess({
    ADDRESS: `https://${domain}/`,
    NODE_EXTRA_CA_CERTS: provider.authorityFile,
    NODE_OPTIONS: '--insecure-http-parser',
  });
  assert.equal(end, 'connection-failed');
});

test('connects to the provider directly even if the environment names a proxy', async () => {
  const nowhere = 'http://127.0.0.1:9';
  const proxied = { NODE_USE_ENV_PROXY: '1', HTTPS_PROXY: nowhere, https_proxy: nowhere };
  const end = await endInProcess({ ...proxied, NODE_EXTRA_CA_CERTS: provider.authorityFile });
  assert.equal(end, 'fetched');
});

for (const [address, host, port] of [
  ['https://idp.test/keys', 'idp.test', 443],
  ['https://[::1]/keys', '::1', 443],
  ['https://[::1]:8443/keys', '::1', 8_443],
] as const) {
  test(`connects to ${host} at port ${port} for ${address}`, async (context) => {
    const { mock } = context.mock.method(net, 'connect', () => new net.Socket().destroy());
    syncBuiltinESMExports();
    const bytes = new ByteLimit();
    const limits = { signal: new AbortController().signal, bytes };
    await assert.rejects(bytes.during(connectDirectly(new URL(address), limits)));
    const [asked] = mock.calls[0]?.arguments as unknown as [net.TcpNetConnectOpts];
    mock.restore();
    syncBuiltinESMExports();
    assert.deepEqual([asked.host, asked.port], [host, port]);
  });
}
