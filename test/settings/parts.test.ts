/* The parts that settings describe: each has the value of every setting of its own. */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import type { Resource } from '../../src/gate/options.ts';
import { createParts } from '../../src/settings/parts.ts';
import { Part } from '../../src/verify/base/option.ts';
import type { RequestFacts } from '../../src/verify/request/facts.ts';
import { captureLog } from '../support/captured.ts';

const factsOf = (facts: Partial<RequestFacts>) => ({ rawHeaders: [], ...facts }) as unknown as RequestFacts;

test('makes the log alone without settings, at its usual level and without requests', async () => {
  const { log, ...others } = await createParts({});
  const { level, isAccessLogged } = Part.contentOf(log);
  assert.deepEqual([level, isAccessLogged], ['info', false]);
  for (const [name, part] of Object.entries(others)) assert.equal(part, undefined, name);
});

test('makes the log with its level, and with a line for each request', async () => {
  const { level, isAccessLogged } = Part.contentOf(
    (await createParts({ logLevel: 'debug', accessLog: true })).log,
  );
  assert.deepEqual([level, isAccessLogged], ['debug', true]);
});

for (const [errorMessages, told] of [
  [true, 'no such table'],
  [false, undefined],
] as const) {
  test(`makes a log that ${errorMessages ? 'tells' : 'hides'} what errors say [§28]`, async (t) => {
    const logged = captureLog(t);
    const { log } = Part.contentOf((await createParts({ errorMessages })).log);
    log('request failed', { reason: 'bug' }, new Error('no such table'));
    assert.equal((await logged()).at(-1)?.errorMessage, told);
  });
}

test('makes the replay store, the proxy and the revocations of an address each', async () => {
  const settings = {
    dpopReplayStore: 'redis://proofs.test',
    revocationStore: 'redis-cluster://store.test',
    proxy: 'http://proxy.test',
  };
  const { replayStore, connect, revocations } = await createParts(settings);
  assert.ok(Part.is(replayStore) && Part.is(connect));
  assert.equal(Part.contentOf(revocations)?.kind, 'redis-cluster');
});

test('makes client certificates with their field, proxies and whether they are required', async () => {
  const settings = { clientCertSource: 'pem', clientCertField: 'X-Cert', clientCertProxies: ['192.0.2.1'] };
  for (const clientCertRequired of [true, false]) {
    const { clientCertificates } = await createParts({ ...settings, clientCertRequired });
    const { createConfirm: _, ...content } = Part.contentOf(clientCertificates)!;
    assert.deepEqual(content, {
      source: 'pem X-Cert',
      field: 'x-cert',
      proxies: ['192.0.2.1'],
      isRequired: clientCertRequired,
    });
  }
});

test('makes metadata with the scopes, the name and the documentation of the resource [RFC 9728 §2]', async () => {
  const resource: Resource = { issuers: {}, dpopMode: 'ALLOWED', dpopAlgorithms: [], log: () => {} };
  const { metadata } = await createParts({
    resourceUrl: 'https://api.test',
    resourceScopes: ['read'],
    resourceName: 'Orders',
    resourceDocumentation: 'https://api.test/docs',
  });
  const early = Part.contentOf(metadata)!.createEarly(resource);
  const { reply } = early(factsOf({ method: 'GET', path: '/.well-known/oauth-protected-resource' }))!;
  const document = JSON.parse(String(reply?.content));
  assert.deepEqual(
    [document.resource, document.scopes_supported, document.resource_name, document.resource_documentation],
    ['https://api.test', ['read'], 'Orders', 'https://api.test/docs'],
  );
});

test('makes cross-origin access with its origins, credentials, methods and fields [§9]', async () => {
  const { cors } = await createParts({
    corsAllowedOrigins: ['https://app.test'],
    corsAllowCredentials: true,
    corsAllowedMethods: ['PUT'],
    corsAllowedHeaders: ['X-Sent'],
    corsExposedHeaders: ['X-Shown'],
  });
  const access = Part.contentOf(cors)!({ dpopMode: 'DISABLED', methods: ['GET'] });
  const asked = ['Origin', 'https://app.test', 'Access-Control-Request-Method', 'PUT'];
  const allowed = access.preflight(factsOf({ method: 'OPTIONS', rawHeaders: asked }))?.crossOrigin?.join();
  assert.match(access.forReading('https://app.test').join(), /X-Shown/);
  for (const word of [/credentials,true/i, /methods,PUT/i, /X-Sent/]) assert.match(String(allowed), word);
  assert.deepEqual(access.forReading('https://other.test'), []);
});

test('makes cross-origin access without credentials if it has none [§9]', async () => {
  const { cors } = await createParts({
    corsAllowedOrigins: ['https://app.test'],
    corsAllowCredentials: false,
  });
  const access = Part.contentOf(cors)!({ dpopMode: 'DISABLED', methods: ['GET'] });
  const fields = access.forReading('https://app.test').join();
  assert.match(fields, /allow-origin,https:\/\/app\.test/i);
  assert.doesNotMatch(fields, /credentials/i);
});

test('makes metrics that listen at their own port and host', async () => {
  const { metrics } = await createParts({ metricsPort: 0, metricsHost: '127.0.0.1' });
  const endpoint = Part.contentOf(metrics)!.endpoint!;
  try {
    // Nothing listens at an address that is not of this machine.
    assert.ok((await endpoint.listen('192.0.2.1')) > 0);
  } finally {
    endpoint.close();
  }
});
