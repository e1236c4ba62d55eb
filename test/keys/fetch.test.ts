/* Where the key set is looked for. What is taken as an answer, and when it gives up: fetch-faults.test.ts. */
import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { after, afterEach, before, test, type TestContext } from 'node:test';
import { createKeyFetcher } from '../../src/keys/fetch.ts';
import { Listener } from '../idp/listener.ts';
import { startProvider, type Provider } from '../idp/provider.ts';
import { fetchKeys, flawOf, keySetOf, kidsOf, restore, sourceOf, startSilent } from './fetching.ts';

let provider: Provider;
let other: Provider;
before(async () => {
  [provider, other] = await Promise.all([startProvider(), startProvider()]);
});
after(() => Promise.all([provider.stop(), other.stop()]));
afterEach(() => Promise.all([restore(provider), restore(other)]));

/** A server with the provider's certificate that answers every path with what `documents` has for it, else 404. */
async function startDocuments(
  context: TestContext,
  documents: (domain: string) => Record<string, object>,
): Promise<{ domain: string; paths: string[] }> {
  const paths: string[] = [];
  const handle = async ({ url = '' }: IncomingMessage, response: ServerResponse) => {
    paths.push(url);
    const document = documents(domain)[url];
    response.writeHead(document === undefined ? 404 : 200).end(JSON.stringify(document));
  };
  const listener = new Listener('localhost', 0, { countConnection: () => {}, handle });
  await listener.enter({ listening: true, certificate: 'provider' });
  context.after(() => listener.enter({ listening: false, certificate: 'provider' }));
  const domain = `localhost:${listener.port}`;
  return { domain, paths };
}

test('fetches the key set that the discovery document names [OpenID Connect Discovery §4]', async () => {
  assert.deepEqual(kidsOf(await fetchKeys(sourceOf(provider))), [provider.signingKey.kid]);
  const { discovery, keySet, connections } = provider.counts;
  assert.deepEqual([discovery, keySet, connections], [1, 1, 2]);
});

test('fetches from the configured address without discovery', async () => {
  assert.deepEqual(kidsOf(await fetchKeys(sourceOf(provider, { jwksUri: keySetOf(provider) }))), [
    provider.signingKey.kid,
  ]);
  assert.deepEqual([provider.counts.discovery, provider.counts.connections], [0, 1]);
});

test('finds the address anew at every fetch', async () => {
  const fetcher = createKeyFetcher(sourceOf(provider));
  await fetcher();
  provider.discoveryDocument({ jwks_uri: keySetOf(other) });
  assert.deepEqual(kidsOf(await fetcher()), [other.signingKey.kid]);
});

const DISCOVERY: [condition: string, path: string][] = [
  ['with a path and a trailing slash', '/tenant/v2/'],
  ['with a path and no trailing slash', '/tenant/v2'],
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

test('falls back to the address on the domain when there is no discovery document', async () => {
  await provider.fault('discovery', { status: 404 });
  assert.deepEqual(kidsOf(await fetchKeys(sourceOf(provider, { domain: other.domain }))), [
    other.signingKey.kid,
  ]);
  assert.deepEqual([provider.counts.discovery, provider.counts.keySet], [1, 0]);
});

test('does not fall back when the address that discovery names has nothing', async () => {
  await provider.fault('keySet', { status: 404 });
  assert.deepEqual(await flawOf(sourceOf(provider, { domain: other.domain })), ['status-refused', '404']);
  assert.equal(other.counts.connections, 0);
});

const ISSUERS: [condition: string, change: (issuer: string) => Record<string, unknown>][] = [
  ['names another issuer', () => ({ issuer: 'https://wrong.test/' })],
  ['lacks the trailing slash of the issuer', (issuer) => ({ issuer: issuer.slice(0, -1) })],
  ['has the issuer in another case', (issuer) => ({ issuer: issuer.toUpperCase() })],
  ['has the issuer in an array', (issuer) => ({ issuer: [issuer] })],
  ['names no issuer', () => ({ issuer: undefined })],
];

for (const [condition, change] of ISSUERS) {
  test(`refuses a discovery document that ${condition} [OpenID Connect Discovery §4.3]`, async () => {
    provider.discoveryDocument(change(provider.issuer));
    assert.deepEqual(await flawOf(sourceOf(provider)), ['issuer-mismatch', '']);
    assert.equal(provider.counts.keySet, 0);
  });
}

const ADDRESSES: [condition: string, address: (plain: string) => unknown][] = [
  ['without an address', () => undefined],
  ['with an address that is plain http', (plain) => plain],
  ['with an address of another scheme', () => 'file:///etc/passwd'],
  ['with an address that is data', () => 'data:application/json,{"keys":[]}'],
  ['with an address that is relative', () => '/.well-known/jwks.json'],
  ['with an address that is empty', () => ''],
  ['with addresses in an array', () => [keySetOf(provider)]],
];

for (const [condition, address] of ADDRESSES) {
  test(`refuses a discovery document ${condition}`, async (context) => {
    const plain = await startSilent(context);
    provider.discoveryDocument({ jwks_uri: address(`http://localhost:${plain.port}/`) });
    assert.deepEqual(
      [...(await flawOf(sourceOf(provider))), plain.connections()],
      ['address-refused', '', 0],
    );
  });
}

test('makes no connection when an address is plain http', async (context) => {
  const plain = await startSilent(context);
  const address = `http://localhost:${plain.port}/`;
  for (const from of [sourceOf(provider, { jwksUri: address }), sourceOf(provider, { issuer: address })])
    await flawOf(from);
  assert.equal(plain.connections(), 0);
});
