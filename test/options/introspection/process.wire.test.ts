/* The process with introspection: what it says at its start, and that neither keys nor secrets matter to opaque
   tokens (docs/introspection.md). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DOWN, runProcess } from '../../support/process.ts';
import { json, startEndpoint } from './endpoint-fixture.ts';

test('lets opaque tokens in without keys, says at the start what each issuer is asked about, and logs no secret [§22]', async (t) => {
  const endpoint = await startEndpoint(t);
  const exp = Math.floor(Date.now() / 1000) + 600;
  endpoint.say = json({ active: true, aud: DOWN.IDP_AUDIENCE, sub: 'ada', exp });
  const service = await runProcess(t, {
    environment: {
      LOG_LEVEL: 'debug',
      IDP_INTROSPECTION: 'opaque',
      IDP_INTROSPECTION_URI: endpoint.uri,
      IDP_INTROSPECTION_CLIENT_ID: 'orders-api',
      IDP_INTROSPECTION_CLIENT_SECRET: 'sesame',
      ISSUERS: 'partner',
      ISSUER_PARTNER_DOMAIN: '127.0.0.1:2',
      ISSUER_PARTNER_AUDIENCE: 'x',
      ISSUER_PARTNER_INTROSPECTION: 'jwt',
      ISSUER_PARTNER_INTROSPECTION_URI: endpoint.uri,
      ISSUER_PARTNER_INTROSPECTION_CLIENT_ID: 'orders-api',
      ISSUER_PARTNER_INTROSPECTION_CLIENT_SECRET: 'sesame',
    },
  });
  const { introspection } = await service.logged('listening');
  assert.deepEqual(introspection, { idp: ['opaque'], partner: ['jwt'] });

  assert.equal((await service.ask('/api/private', { token: 'secret-token' })).status, 200);
  assert.equal((await service.ask('/readyz')).status, 503);

  endpoint.say = json({}, 500);
  assert.equal((await service.ask('/api/private', { token: 'secret-other' })).status, 503);
  const lost = await service.logged('introspection lost');
  assert.deepEqual(
    [lost.level, lost.issuer, lost.reason, lost.code],
    ['warn', 'idp', 'status-refused', '500'],
  );

  endpoint.say = json({ active: false });
  assert.equal((await service.ask('/api/private', { token: 'secret-third' })).status, 401);
  await service.logged('introspection ready');
  assert.doesNotMatch(JSON.stringify(service.logs) + service.errors(), /secret|sesame/);
});

test('sends the configured issuer, and null for no audience, where the response of the provider names neither [§3, §22]', async (t) => {
  const endpoint = await startEndpoint(t);
  const exp = Math.floor(Date.now() / 1000) + 600;
  endpoint.say = json({ active: true, sub: 'ada', exp });
  const service = await runProcess(t, {
    environment: {
      PROFILE: 'A',
      IDP_INTROSPECTION: 'opaque',
      IDP_INTROSPECTION_URI: endpoint.uri,
      IDP_INTROSPECTION_CLIENT_ID: 'orders-api',
      IDP_INTROSPECTION_CLIENT_SECRET: 'sesame',
      IDP_INTROSPECTION_AUDIENCE: 'provider',
    },
  });
  await service.logged('listening');

  const { text } = await service.ask('/api/profile', { token: 'opaque' });
  const issuer = `https://${DOWN.IDP_DOMAIN}/`;
  assert.deepEqual(JSON.parse(text), { userId: 'ada', email: null, scope: null, issuer, audience: null });
});

test('asks about a token again at once where IDP_INTROSPECTION_CACHE_SECONDS is 0 [§22]', async (t) => {
  const endpoint = await startEndpoint(t);
  const exp = Math.floor(Date.now() / 1000) + 600;
  endpoint.say = json({ active: true, aud: DOWN.IDP_AUDIENCE, sub: 'ada', exp });
  const service = await runProcess(t, {
    environment: {
      IDP_INTROSPECTION: 'opaque',
      IDP_INTROSPECTION_URI: endpoint.uri,
      IDP_INTROSPECTION_CLIENT_ID: 'orders-api',
      IDP_INTROSPECTION_CLIENT_SECRET: 'sesame',
      IDP_INTROSPECTION_CACHE_SECONDS: '0',
    },
  });
  await service.logged('listening');

  for (const questions of [1, 2]) {
    assert.equal((await service.ask('/api/private', { token: 'opaque' })).status, 200);
    assert.equal(endpoint.questions.length, questions);
  }
});
