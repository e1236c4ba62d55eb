/* Where the token of an issuer goes, and whom its authorities vouch for: over real TLS, with an authority that
   nothing else here trusts. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test, type TestContext } from 'node:test';
import { keyAccess, type KeyAccessOptions } from '../../src/key-access.ts';
import { Part } from '../../src/verify/base/option.ts';
import { connectDirectly, HEADERS, KeyFetch, type Connect } from '../../src/verify/keys/fetch.ts';
import { FetchError } from '../../src/verify/keys/jwks.ts';
import { startProxy } from '../idp/proxy.ts';
import { createKeyFetcher, connectThrough, kidsOf } from '../verify/keys/fetch-fixture.ts';
import {
  CLUSTER_AUTHORITY,
  directoryFor,
  startCluster,
  TOKEN,
  USUAL_AUTHORITY,
  type ClusterServer,
} from './key-access-fixture.ts';

const KEYS = { keys: [{ kid: 'a' }] };

const DISCOVERY = '/.well-known/openid-configuration';

const documentOf = (issuer: string, jwks_uri: string) => ({ issuer, jwks_uri });

/** Discovery that names its own key set. */
const usual = ({ issuer }: ClusterServer) => ({
  [DISCOVERY]: documentOf(issuer, `${issuer}keys`),
  '/keys': KEYS,
});

const withToken = (context: TestContext): KeyAccessOptions => ({
  tokenFile: directoryFor(context)('token', `${TOKEN}\n`),
  caFile: CLUSTER_AUTHORITY,
});

interface Source {
  readonly domain: string;
  readonly issuer: string;
  readonly jwksUri?: string;
}

function fetcherFor({ domain, issuer, jwksUri }: Source, options: KeyAccessOptions, proxy?: string) {
  const source = { domain, issuer, jwksUri, keyAccess: keyAccess(options) };
  return createKeyFetcher(source, proxy === undefined ? undefined : connectThrough(proxy), 30_000);
}

const failureOf = (fetching: Promise<unknown>) =>
  fetching.then(
    () => assert.fail('the fetch succeeded'),
    (thrown: unknown) => (FetchError.is(thrown) ? [thrown.reason, thrown.code] : Promise.reject(thrown)),
  );

const shownTo = ({ asked }: ClusterServer) => asked.map(({ path, authorization }) => [path, authorization]);

const BEARER = `Bearer ${TOKEN}`;

test('sends the token with the fetches of the discovery document and of the keys [§25, RFC 6750 §2.1]', async (t) => {
  const server = await startCluster(t, usual, () => TOKEN);
  assert.deepEqual(kidsOf(await fetcherFor(server, withToken(t))()), ['a']);
  assert.deepEqual(shownTo(server), [
    [DISCOVERY, BEARER],
    ['/keys', BEARER],
  ]);
});

test('names itself beside the token, since firewalls turn away requests that do not [RFC 9110 §10.1.5]', async (t) => {
  const server = await startCluster(t, usual, () => TOKEN);
  await fetcherFor(server, withToken(t))();
  assert.deepEqual(
    server.asked.map(({ agent }) => agent),
    [HEADERS['User-Agent'], HEADERS['User-Agent']],
  );
});

test('sends the token to the configured address alone, without discovery [§25]', async (t) => {
  const server = await startCluster(t, usual, () => TOKEN);
  const source = { domain: 'other.test', issuer: 'https://other.test/', jwksUri: `${server.issuer}keys` };
  assert.deepEqual(kidsOf(await fetcherFor(source, withToken(t))()), ['a']);
  assert.deepEqual(shownTo(server), [['/keys', BEARER]]);
});

test('sends no token where none is configured', async (t) => {
  const server = await startCluster(t, usual);
  await fetcherFor(server, { caFile: CLUSTER_AUTHORITY })();
  assert.deepEqual(
    shownTo(server).flatMap(([, shown]) => shown ?? []),
    [],
  );
});

test('reads both files anew for each fetch [§25]', async (t) => {
  let wanted = 'first';
  const server = await startCluster(t, usual, () => wanted);
  const write = directoryFor(t);
  const tokenFile = write('token', 'first');
  const caFile = write('ca.pem', readFileSync(CLUSTER_AUTHORITY));
  const fetch = fetcherFor(server, { tokenFile, caFile });
  await fetch();
  wanted = 'second';
  assert.deepEqual(await failureOf(fetch()), ['status-refused', '401']);
  write('token', 'second\n');
  await fetch();
  write('ca.pem', readFileSync(USUAL_AUTHORITY));
  assert.equal((await failureOf(fetch()))[0], 'certificate-refused');
  write('ca.pem', readFileSync(CLUSTER_AUTHORITY));
  await fetch();
});

for (const [what, change] of [
  ['port', (other: ClusterServer) => `${other.issuer}keys`],
  ['host', (_: ClusterServer, { port }: ClusterServer) => `https://127.0.0.1:${port}/keys`],
  [
    'host that only begins like it',
    (_: ClusterServer, { port }: ClusterServer) => `https://localhost.test:${port}/`,
  ],
] as const) {
  test(`sends the token to no other ${what} that discovery names, and opens no connection there [§25, J9]`, async (t) => {
    const other = await startCluster(t, usual);
    const server = await startCluster(t, (own) => ({
      [DISCOVERY]: documentOf(own.issuer, change(other, own)),
      '/keys': KEYS,
    }));
    assert.deepEqual(await failureOf(fetcherFor(server, withToken(t))()), ['address-refused', '']);
    assert.deepEqual([other.connections, server.connections], [0, 1]);
    // Without a token, discovery may name it.
    if (what !== 'port') return;
    assert.deepEqual(kidsOf(await fetcherFor(server, { caFile: CLUSTER_AUTHORITY })()), ['a']);
  });
}

for (const origin of ['https://localhost.test', 'https://localhost:8443']) {
  test(`sends the token to no ${origin} that discovery names for https://localhost, which it continues [§25, J9]`, async (t) => {
    const issuer = 'https://localhost/';
    const server = await startCluster(t, () => ({
      [DISCOVERY]: documentOf(issuer, `${origin}/keys`),
      '/keys': KEYS,
    }));
    const connect: Connect = (_, limits) => connectDirectly(new URL(server.issuer), limits);
    const source = { domain: 'localhost', issuer, jwksUri: undefined, keyAccess: keyAccess(withToken(t)) };
    assert.deepEqual(await failureOf(createKeyFetcher(source, connect, 30_000)()), ['address-refused', '']);
    assert.equal(server.connections, 1);
  });
}

for (const user of ['user:secret', 'user', ':secret']) {
  test(`sends no token to an address with ${user}@ that discovery names [§25, J9]`, async (t) => {
    const server = await startCluster(t, (own) => ({
      [DISCOVERY]: documentOf(own.issuer, `https://${user}@${own.domain}/keys`),
      '/keys': KEYS,
    }));
    assert.deepEqual(await failureOf(fetcherFor(server, withToken(t))()), ['address-refused', '']);
    assert.equal(server.connections, 1);
  });
}

test('sends the token to no other origin in place of a document that does not exist [§25, RFC 6750 §5.3, J9]', async (t) => {
  const other = await startCluster(t, () => ({ '/.well-known/jwks.json': KEYS }));
  const server = await startCluster(t, () => ({ '/.well-known/jwks.json': KEYS }));
  const { issuer } = server;
  const elsewhere = { domain: other.domain, issuer };
  assert.deepEqual(await failureOf(fetcherFor(elsewhere, withToken(t))()), ['address-refused', '']);
  assert.equal(other.connections, 0);
  assert.deepEqual(kidsOf(await fetcherFor(server, withToken(t))()), ['a']);
});

test('trusts the authorities in place of those of NODE_EXTRA_CA_CERTS, and them alone [§25]', async (t) => {
  const usualServer = await startCluster(t, usual, undefined, 'provider');
  const [reason] = await failureOf(fetcherFor(usualServer, { caFile: CLUSTER_AUTHORITY })());
  assert.equal(reason, 'certificate-refused');
  await fetcherFor(usualServer, { caFile: USUAL_AUTHORITY })();

  const server = await startCluster(t, usual);
  const { domain, issuer } = server;
  const without = createKeyFetcher({ domain, issuer, jwksUri: undefined }, undefined, 30_000);
  assert.equal((await failureOf(without()))[0], 'certificate-refused');
  const both = readFileSync(USUAL_AUTHORITY, 'utf8') + readFileSync(CLUSTER_AUTHORITY, 'utf8');
  await fetcherFor(server, { caFile: directoryFor(t)('both.pem', both) })();
});

test('checks the name of the server, too [§25, F8]', async (t) => {
  const server = await startCluster(t, usual, undefined, 'other-host');
  const outcome = await failureOf(fetcherFor(server, { caFile: USUAL_AUTHORITY })());
  assert.deepEqual(outcome, ['certificate-refused', 'ERR_TLS_CERT_ALTNAME_INVALID']);
});

test('uses no connection and no TLS session of an earlier fetch [§25]', async (t) => {
  const server = await startCluster(t, usual);
  const fetch = fetcherFor(server, withToken(t));
  await fetch();
  await fetch();
  assert.equal(server.connections, 4);
  assert.deepEqual(
    server.asked.map(({ isResumed }) => isResumed),
    [false, false, false, false],
  );
});

test('applies token and authorities inside the tunnel of a proxy, which sees neither [§25]', async (t) => {
  const proxy = await startProxy();
  t.after(() => proxy.stop());
  const server = await startCluster(t, usual, () => TOKEN);
  await fetcherFor(server, withToken(t), `http://localhost:${proxy.port}`)();
  assert.deepEqual(
    shownTo(server).map(([, shown]) => shown),
    [BEARER, BEARER],
  );
  assert.deepEqual(
    proxy.asked.map(({ headers }) => headers.authorization),
    [undefined, undefined],
  );
  const trusted = { caFile: USUAL_AUTHORITY };
  const refused = failureOf(fetcherFor(server, trusted, `http://localhost:${proxy.port}`)());
  assert.equal((await refused)[0], 'certificate-refused');
});

test('opens no connection while a file is refused, and fetches again once it is valid [§25]', async (t) => {
  const server = await startCluster(t, usual, () => TOKEN);
  const write = directoryFor(t);
  const tokenFile = write('token', TOKEN);
  const fetch = fetcherFor(server, { tokenFile, caFile: CLUSTER_AUTHORITY });
  write('token', 'no token');
  assert.deepEqual(await failureOf(fetch()), ['token-file-refused', '']);
  assert.equal(server.connections, 0);
  write('token', TOKEN);
  await fetch();
});

test('counts the reading of the files towards the time of a fetch [§25]', async (t) => {
  const { domain, issuer } = await startCluster(t, usual);
  const read = () => new Promise<never>(() => {});
  const stuck = Part.make('keyAccess', { read, readAuthorities: read });
  const source = { domain, issuer, jwksUri: undefined, keyAccess: stuck };
  assert.deepEqual(await failureOf(createKeyFetcher(source, undefined, 20)()), ['timeout', '']);
});

test('connects nowhere once the time of a fetch is over while the files were read [§25]', async (t) => {
  const { domain, issuer } = await startCluster(t, usual);
  const connected: URL[] = [];

  const connect: Connect = (url, limits) => {
    connected.push(url);
    return connectDirectly(url, limits);
  };

  const controller = new AbortController();

  const read = async () => {
    controller.abort();
    return {};
  };

  const late = Part.make('keyAccess', { read, readAuthorities: read });
  const source = { domain, issuer, jwksUri: undefined, keyAccess: late };
  await assert.rejects(new KeyFetch(source, connect).fetch(controller.signal), {
    reason: 'connection-failed',
  });
  assert.deepEqual(connected, []);
});
