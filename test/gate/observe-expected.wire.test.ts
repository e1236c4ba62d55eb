/* What a refused token or proof was compared with, at LOG_LEVEL=debug (docs/logs-and-metrics.md): by service and
   forward-auth. The gate: any-server.wire.test.ts. */
import { strict as assert } from 'node:assert';
import { test, type TestContext } from 'node:test';
import { composeService } from '../../src/service/create-service.ts';
import { readServiceOptions, type ServiceOptions } from '../../src/service/options.ts';
import { systemClock as clock } from '../../src/verify/base/clock.ts';
import { Part } from '../../src/verify/base/option.ts';
import type { LogLevel } from '../../src/verify/base/events.ts';
import { Listener } from '../../src/service/connection/listener.ts';
import { get, upstream } from '../../src/service/routes/route.ts';
import { authenticated } from '../../src/gate/rules/access.ts';
import { introspection } from '../../src/introspection.ts';
import { createProof, createProofKey, createTestIssuer } from '../../src/testing.ts';
import { asking, bound, bearer, issuer as ofPolicies, startPolicy } from '../options/forward-auth-fixture.ts';
import { serve } from '../support/serve.ts';
import { createTestLog, kindWith } from '../support/settings.ts';

const issuer = createTestIssuer();
const partner = createTestIssuer({ domain: 'partner.test', audience: 'https://partners.test' });
const key = createProofKey();

/** Text that only a client sends. */
const SECRET = 'eyJhbGciOi';

const EXPECTATIONS = ['expectedAudience', 'expectedIssuer', 'expectedHtu', 'knownKeys'];

/** The reason and the expectations of each refusal in a log. */
const refusalsIn = (logs: readonly Record<string, unknown>[]) =>
  logs
    .filter(({ message }) => message === 'request refused')
    .map((line) => [
      line.reason,
      Object.fromEntries(Object.entries(line).filter(([name]) => EXPECTATIONS.includes(name))),
    ]);

async function startIssuers(t: TestContext, level: LogLevel = 'debug', given: Partial<ServiceOptions> = {}) {
  const issuers = { partner: { domain: 'partner.test', audience: 'https://partners.test' } };
  const { log: all, logs } = createTestLog(clock);
  // Whatever the level, the test sees every line.
  const log = Part.make('log', { ...Part.contentOf(all), level });
  const fetchKeys = (_: unknown, name: string) => (name === 'idp' ? issuer : partner).options.fetchKeys();
  const values = readServiceOptions({ ...issuer.options, issuers, log, fetchKeys, ...given });
  const routes = [get('/orders/{id}', authenticated, () => ({}))];
  const service = composeService({ routes }, values, kindWith(clock));
  const served = await serve(new Listener(service.responder, clock, 15_000).server);
  t.after(async () => {
    await served.stop();
    service.close();
  });
  await Promise.all(service.fetchKeys());

  const send = (token: string, fields: Record<string, string> = {}) =>
    served.ask(`/orders/${SECRET}`, { headers: { Authorization: `Bearer ${token}`, ...fields } });

  return { port: served.port, logs, send };
}

/** Fields with a token and a proof for another URL. */
function misdirected() {
  const token = issuer.boundToken(key);
  const proof = createProof(key, { method: 'GET', url: `https://other.test/${SECRET}` }, token);
  return { token, fields: { Authorization: `DPoP ${token}`, DPoP: proof } };
}

/** Signs for the same issuer with a key that it does not publish. */
const stranger = createTestIssuer();

test('a service with several issuers tells what the one expected that an opaque token belongs to', async (t) => {
  const part = introspection({ tokens: ['opaque'], clientId: 'orders-api', clientSecret: 'secret-word' });

  const introspect = async () => ({
    active: true,
    iss: SECRET,
    aud: 'https://api.test',
    sub: 'a',
    exp: 2 ** 33,
  });

  const { logs, send } = await startIssuers(t, 'debug', { introspection: part, introspect });
  await send('opaque');
  assert.deepEqual(refusalsIn(logs), [['issuer-mismatch', { expectedIssuer: ['https://issuer.test/'] }]]);
});

test('a service with several issuers tells what the issuer of the token expected, or all if none is named', async (t) => {
  const { port, logs, send } = await startIssuers(t);
  const { token, fields } = misdirected();
  await send(issuer.token({ aud: SECRET }));
  await send(partner.token({ aud: SECRET }));
  await send(issuer.token({ iss: SECRET }));
  await send(stranger.token());
  await send(token, fields);
  await send(issuer.token({ exp: 1 }));
  assert.deepEqual(refusalsIn(logs), [
    ['audience-mismatch', { expectedAudience: ['https://api.test'] }],
    ['audience-mismatch', { expectedAudience: ['https://partners.test'] }],
    ['issuer-mismatch', { expectedIssuer: ['https://issuer.test/', 'https://partner.test/'] }],
    ['key-unknown', { knownKeys: 1 }],
    ['proof-htu', { expectedHtu: `http://127.0.0.1:${port}/orders/{id}` }],
    ['expired', {}],
  ]);
  assert.doesNotMatch(JSON.stringify(logs), new RegExp(SECRET));
});

test('a service with one issuer and PUBLIC_URL tells that issuer, and the public URL with the pattern of the route', async (t) => {
  const { logs, send } = await startIssuers(t, 'debug', { issuers: {}, publicUrl: 'https://api.test/v1' });
  const { token, fields } = misdirected();
  await send(issuer.token({ iss: SECRET }));
  await send(token, fields);
  assert.deepEqual(refusalsIn(logs), [
    ['issuer-mismatch', { expectedIssuer: ['https://issuer.test/'] }],
    ['proof-htu', { expectedHtu: 'https://api.test/v1/orders/{id}' }],
  ]);
});

test('a service tells each audience, and up to 256 characters of an issuer and an audience', async (t) => {
  const LONG = `https://issuer.test/${'a'.repeat(300)}`;
  const expected = LONG.slice(0, 256);
  const given = { issuers: {}, issuer: LONG, audience: ['https://api.test', LONG] };
  const { logs, send } = await startIssuers(t, 'debug', given);
  await send(issuer.token({ iss: LONG, aud: SECRET }));
  await send(issuer.token({ iss: SECRET }));
  assert.deepEqual(refusalsIn(logs), [
    ['audience-mismatch', { expectedAudience: ['https://api.test', expected] }],
    ['issuer-mismatch', { expectedIssuer: [expected] }],
  ]);
});

test('above debug, a service gathers no line about a refusal', async (t) => {
  const { logs, send } = await startIssuers(t, 'info');
  await send(issuer.token({ aud: SECRET }));
  assert.deepEqual(refusalsIn(logs), []);
});

test('forward-auth tells the URL that the proxy asked about, with the pattern of the route', async (t) => {
  const routes = [get('/orders/{id}', authenticated, upstream)];
  const policy = await startPolicy({ routes });
  t.after(policy.stop);
  const forwarded = asking('GET', `/orders/${SECRET}`);
  await policy.ask({ forwarded, fields: bound('GET', `https://other.test/orders/${SECRET}`) });
  await policy.ask({ forwarded, fields: bearer({ aud: SECRET }) });
  await policy.ask({ forwarded, fields: bearer({ iss: SECRET }) });
  assert.deepEqual(refusalsIn(policy.logs), [
    ['proof-htu', { expectedHtu: 'https://api.example/orders/{id}' }],
    ['audience-mismatch', { expectedAudience: [ofPolicies.options.audience] }],
    ['issuer-mismatch', { expectedIssuer: [`https://${ofPolicies.options.domain}/`] }],
  ]);
  assert.doesNotMatch(JSON.stringify(policy.logs), new RegExp(SECRET));
});
