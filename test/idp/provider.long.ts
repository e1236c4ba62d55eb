import assert from 'node:assert/strict';
import { createPublicKey, verify, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { afterEach, beforeEach, test } from 'node:test';
import { startProvider, type Provider } from './provider.ts';
import { begin, fetchJson, fetchWhole, head } from './request.ts';

let provider: Provider;

beforeEach(async () => {
  provider = await startProvider();
});

afterEach(() => provider.stop());

const keySetUrl = () => `${provider.issuer}.well-known/jwks.json`;

const discoveryUrl = () => `${provider.issuer}.well-known/openid-configuration`;

function parse(token: string): { header: Record<string, unknown>; claims: Record<string, unknown> } {
  const [header, claims] = token.split('.').map((part) => Buffer.from(part, 'base64url').toString());
  return { header: JSON.parse(header!), claims: JSON.parse(claims!) };
}

async function publishedKids(): Promise<unknown[]> {
  const { keys } = (await fetchJson(keySetUrl())) as { keys: { kid: string }[] };
  return keys.map((key) => key.kid);
}

test('publishes URLs below its issuer', async () => {
  const document = await fetchJson(discoveryUrl());
  assert.equal(document['issuer'], `https://localhost:${provider.port}/`);
  assert.equal(document['jwks_uri'], keySetUrl());
  assert.equal(document['token_endpoint'], `${provider.issuer}oauth/token`);
});

test('changes the discovery document when members are overridden', async () => {
  provider.discoveryDocument({ jwks_uri: 'http://other.test/', issuer: undefined });
  const document = await fetchJson(discoveryUrl());
  assert.equal(document['jwks_uri'], 'http://other.test/');
  assert.equal('issuer' in document, false);
  provider.discoveryDocument(undefined);
  assert.equal((await fetchJson(discoveryUrl()))['jwks_uri'], keySetUrl());
});

test('serves whatever value is published in place of its key set, and its own keys again after undefined', async () => {
  for (const value of [{ keys: 'none' }, null, 7]) {
    provider.publish(value);
    assert.deepEqual(JSON.parse(String((await fetchWhole(keySetUrl())).body)), value);
  }
  provider.publish(undefined);
  assert.deepEqual(await publishedKids(), [provider.signingKey.kid]);
});

test('answers 405 when a document is posted to', async () => {
  const { status, headers } = await fetchWhole(keySetUrl(), { method: 'POST' });
  assert.deepEqual([status, headers.allow], [405, 'GET, HEAD']);
});

test('issues a token that the published key verifies', async () => {
  const token = provider.issue();
  const { keys } = (await fetchJson(keySetUrl())) as { keys: object[] };
  const [header, payload, signature] = token.split('.') as [string, string, string];
  const key = createPublicKey({ key: keys[0] as never, format: 'jwk' });
  assert.ok(verify('sha256', Buffer.from(`${header}.${payload}`), key, Buffer.from(signature, 'base64url')));
  assert.deepEqual(parse(token).header, { alg: 'RS256', typ: 'JWT', kid: provider.signingKey.kid });
});

test('replaces and removes members when a token is issued with changes', () => {
  const { header, claims } = parse(
    provider.issue({ sub: undefined, scope: 'a' }, { alg: 'none', kid: undefined }),
  );
  assert.deepEqual(header, { alg: 'none', typ: 'JWT' });
  const { iat, exp, ...rest } = claims;
  assert.deepEqual(rest, { iss: provider.issuer, aud: provider.audience, scope: 'a' });
  assert.equal(Number(exp) - Number(iat), 3600);
});

test('publishes both keys when it rotates', async () => {
  const old = provider.signingKey;
  const current = provider.rotate();
  assert.equal(provider.signingKey, current);
  assert.deepEqual(await publishedKids(), [old.kid, current.kid]);
  assert.equal(parse(provider.issue()).header['kid'], current.kid);
  assert.notEqual(old.publicJwk.n, current.publicJwk.n);
});

test('publishes the new key alone when it rotates without keeping the old', async () => {
  const current = provider.rotate({ keepOld: false });
  assert.deepEqual(await publishedKids(), [current.kid]);
});

test('keeps signing with a withdrawn key', async () => {
  const { kid } = provider.signingKey;
  provider.withdraw(kid);
  assert.deepEqual(await publishedKids(), []);
  assert.equal(parse(provider.issue()).header['kid'], kid);
});

test('shares no key with another provider in the process', async () => {
  const other = await startProvider();
  await other.stop();
  assert.notEqual(other.signingKey.publicJwk.n, provider.signingKey.publicJwk.n);
});

test('counts connections and requests when they arrive', async () => {
  for (const url of [
    keySetUrl(),
    keySetUrl(),
    discoveryUrl(),
    `${provider.issuer}oauth/token`,
    provider.issuer,
  ]) {
    await fetchWhole(url);
  }
  assert.deepEqual(provider.counts, { connections: 5, discovery: 1, keySet: 2, token: 1, other: 1 });
  provider.resetCounts();
  assert.deepEqual(provider.counts, { connections: 0, discovery: 0, keySet: 0, token: 0, other: 0 });
});

test('has the given host in its issuer and its domain', async () => {
  const other = await startProvider({ host: '127.0.0.1' });
  const document = await fetchJson(`https://127.0.0.1:${other.port}/.well-known/openid-configuration`);
  assert.equal(document['issuer'], other.issuer);
  assert.equal(other.domain, `127.0.0.1:${other.port}`);
  await other.stop();
});

test('fails to start when its port is taken', async () => {
  await assert.rejects(startProvider({ port: provider.port }), { code: 'EADDRINUSE' });
});

test('names the authority that signed its certificate', () => {
  const provided = new X509Certificate(readFileSync(new URL('tls/provider.pem', import.meta.url)));
  assert.ok(provided.verify(new X509Certificate(readFileSync(provider.authorityFile)).publicKey));
});

test('survives a client that leaves in the middle of its body', async () => {
  const headers = { 'Content-Length': 9 };
  const request = begin(`${provider.issuer}oauth/token`, { method: 'POST', headers, body: '{' });
  request.on('error', () => {});
  while (provider.counts.token === 0) await fetchWhole(discoveryUrl());
  request.destroy();
  assert.equal((await fetchWhole(discoveryUrl())).status, 200);
});

test('survives a client that does not speak TLS', async () => {
  const socket = connect(provider.port, 'localhost');
  socket
    .on('error', () => {})
    .end('GET / HTTP/1.1\r\n\r\n')
    .resume();
  await once(socket, 'close');
  assert.equal((await fetchWhole(discoveryUrl())).status, 200);
});

test('leaves no socket and no timer behind when it stops', async () => {
  await provider.fault('keySet', 'drip');
  await provider.fault('discovery', { delayMillis: 3_600_000 });
  const dripping = await head(keySetUrl());
  const waiting = begin(discoveryUrl());
  const silent = connect(provider.port, 'localhost');
  const ends = [dripping, waiting, silent].map(
    (stream) => new Promise((resolve) => stream.on('error', () => {}).on('close', resolve)),
  );
  while (provider.counts.discovery === 0) await fetchWhole(`${provider.issuer}other`);
  assert.ok(provider.openSockets >= 2);
  await provider.stop();
  assert.equal(provider.openSockets, 0);
  await Promise.all(ends);
  assert.deepEqual(
    process.getActiveResourcesInfo().filter((name) => /Timeout|TCP|TLS/.test(name)),
    [],
  );
  await assert.rejects(fetchWhole(keySetUrl()), { code: 'ECONNREFUSED' });
});

test('stays stopped when a fault ends after the stop', async () => {
  await provider.stop();
  await provider.fault('all', undefined);
  await assert.rejects(fetchWhole(keySetUrl()), { code: 'ECONNREFUSED' });
  await provider.stop();
});
