import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { after, afterEach, before, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { startProvider, type Fault, type Provider } from './provider.ts';
import { begin, fetchJson, fetchWhole, head } from './request.ts';

let provider: Provider;

before(async () => {
  provider = await startProvider();
});

afterEach(async () => {
  await provider.fault('all', undefined);
  provider.resetCounts();
});

after(() => provider.stop());

const keySetUrl = () => `${provider.issuer}.well-known/jwks.json`;

const discoveryUrl = () => `${provider.issuer}.well-known/openid-configuration`;

/** The response of the key-set endpoint with a fault. */
async function keySetUnder(fault: Fault) {
  await provider.fault('keySet', fault);
  return fetchWhole(keySetUrl());
}

test('refuses connections when told to, and listens on the same port when the fault ends', async () => {
  const { port } = provider;
  await provider.fault('keySet', 'refuse');
  await assert.rejects(fetchWhole(discoveryUrl()), { code: 'ECONNREFUSED' });
  await provider.fault('keySet', undefined);
  assert.equal(provider.port, port);
  assert.equal((await fetchWhole(keySetUrl())).status, 200);
});

test('applies the last fault when faults are set without waiting', async () => {
  const changes = (['refuse', 'expired-certificate', undefined] as const).map((fault) =>
    provider.fault('all', fault),
  );
  await Promise.all(changes);
  assert.equal((await fetchWhole(keySetUrl())).status, 200);
});

test('sends nothing when hanging before the headers', async () => {
  await provider.fault('keySet', 'hang-before-headers');
  const request = begin(keySetUrl());
  let answered = false;
  request.on('error', () => {});
  request.on('response', () => {
    answered = true;
  });
  while (provider.counts.keySet === 0) await fetchWhole(discoveryUrl());
  await fetchWhole(discoveryUrl());
  assert.equal(answered, false);
  request.destroy();
});

test('sends the headers alone when hanging after them', async () => {
  await provider.fault('keySet', 'hang-after-headers');
  const response = await head(keySetUrl());
  await fetchWhole(discoveryUrl());
  assert.deepEqual([response.statusCode, response.read(), response.complete], [200, null, false]);
  response.destroy();
});

test('sends single bytes when dripping', async () => {
  await provider.fault('keySet', 'drip');
  const response = await head(keySetUrl());
  for (const _ of [1, 2]) assert.equal(((await once(response, 'data')) as [Buffer])[0].length, 1);
  assert.equal(response.complete, false);
  response.destroy();
});

test('cuts the connection when resetting', async () => {
  await assert.rejects(keySetUnder('reset'), { code: 'ECONNRESET' });
});

test('switches to another protocol when told to', async () => {
  await provider.fault('keySet', 'switch-protocols');
  const [{ statusCode, headers }, socket] = (await once(begin(keySetUrl()), 'upgrade')) as [
    IncomingMessage,
    Socket,
  ];
  assert.deepEqual([statusCode, headers.upgrade], [101, 'websocket']);
  socket.destroy();
});

for (const status of [204, 404, 500]) {
  test(`answers with the status when the fault is ${status}`, async () => {
    assert.equal((await keySetUnder({ status })).status, status);
  });
}

test('redirects when told to', async () => {
  const { status, headers } = await keySetUnder({ redirect: 'https://other.test/' });
  assert.deepEqual([status, headers.location], [302, 'https://other.test/']);
});

test('sends a page when the fault is html', async () => {
  const { status, headers, body } = await keySetUnder('html');
  assert.deepEqual([status, headers['content-type']], [200, 'text/html']);
  assert.match(String(body), /^<!doctype html>/);
});

test('sends half of the document when truncating', async () => {
  const { status, body } = await keySetUnder('truncated-json');
  assert.equal(status, 200);
  assert.throws(() => JSON.parse(String(body)), SyntaxError);
});

test('sends an empty object when told to', async () => {
  assert.equal(String((await keySetUnder('empty-object')).body), '{}');
});

test('sends an empty key set when told to', async () => {
  assert.equal(String((await keySetUnder('empty-keys')).body), '{"keys":[]}');
});

test('sends 10 MB without a Content-Length when the fault is too-large', async () => {
  const { headers, body } = await keySetUnder('too-large');
  assert.deepEqual([headers['content-length'], body.length], [undefined, 10_000_000]);
  assert.doesNotThrow(() => JSON.parse(String(body)));
});

test('sends 100,000 keys, the real one first, when the fault is many-keys', async () => {
  const { keys } = JSON.parse(String((await keySetUnder('many-keys')).body)) as { keys: { kid?: string }[] };
  assert.deepEqual([keys.length, keys[0]?.kid], [100_000, provider.signingKey.kid]);
});

test('names another issuer when told to', async () => {
  await provider.fault('discovery', 'wrong-issuer');
  const document = await fetchJson(discoveryUrl());
  assert.notEqual(document['issuer'], provider.issuer);
  assert.equal(document['jwks_uri'], keySetUrl());
});

test('compresses the document when told to', async () => {
  const { headers, body } = await keySetUnder('gzip');
  assert.equal(headers['content-encoding'], 'gzip');
  assert.ok(Array.isArray((JSON.parse(String(gunzipSync(body))) as { keys: unknown }).keys));
});

test('answers 304 without a body when told to', async () => {
  const { status, body } = await keySetUnder('not-modified');
  assert.deepEqual([status, body.length], [304, 0]);
});

test('responds correctly but late when delaying', async () => {
  const start = performance.now();
  const { status } = await keySetUnder({ delayMillis: 30 });
  assert.equal(status, 200);
  // Timers count whole milliseconds.
  assert.ok(performance.now() - start >= 29);
});

test('shows a certificate for another host when told to', async () => {
  await assert.rejects(keySetUnder('wrong-host-certificate'), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
});

test('shows an expired certificate when told to', async () => {
  await assert.rejects(keySetUnder('expired-certificate'), { code: 'CERT_HAS_EXPIRED' });
});

test('shows the right certificate again when the fault ends', async () => {
  await provider.fault('all', 'expired-certificate');
  await provider.fault('all', undefined);
  assert.equal((await fetchWhole(keySetUrl())).status, 200);
});

test('does not affect other endpoints when one has a fault', async () => {
  await provider.fault('keySet', { status: 500 });
  assert.equal((await fetchWhole(discoveryUrl())).status, 200);
});

test('applies a fault of the token endpoint when a token is requested', async () => {
  await provider.fault('token', { status: 503 });
  assert.equal(
    (await fetchWhole(`${provider.issuer}oauth/token`, { method: 'POST', body: '{}' })).status,
    503,
  );
});
