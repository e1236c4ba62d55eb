import assert from 'node:assert/strict';
import { sign } from 'node:crypto';
import { after, before, test } from 'node:test';
import { startProvider, type Provider } from '../idp/provider.ts';
import { rawJws } from '../idp/tokens.ts';
import { startService, type TestService } from '../support/service.ts';

let provider: Provider;
let service: TestService;
let policed: TestService;
let scp: TestService;

before(async () => {
  provider = await startProvider();
  service = await startService({ provider, environment: { PROFILE: 'A' } });
  policed = await startService({ provider, environment: { PROFILE: 'A', SCOPE_POLICY: 'true' } });
  scp = await startService({
    provider,
    environment: { PROFILE: 'A', IDP_SCOPE_CLAIM: 'scp', IDP_CLAIM_NAMESPACE: 'https://ns.example/' },
  });
});

after(async () => {
  for (const running of [service, policed, scp]) await running.stop();
  await provider.stop();
});

/** The body of the 200 response as sent, with its fields in order. */
async function textOf(running: TestService, path: string, claims?: Record<string, unknown>): Promise<string> {
  const response = await running.ask(path, claims === undefined ? {} : { token: provider.issue(claims) });
  assert.equal(response.status, 200);
  return response.text;
}

test('sends the public message of profile A', async () => {
  assert.equal(await textOf(service, '/api/public'), '{"message":"Hello from a public endpoint!"}');
});

for (const [what, scope, scopes] of [
  ['each scope as an authority', 'read:users write:users', '["SCOPE_read:users","SCOPE_write:users"]'],
  ['no authority for no scope claim', undefined, '[]'],
  ['no authority for an empty scope claim', '', '[]'],
  ['no authority for a scope claim of another type', 7, '[]'],
  ['authorities from an array', ['a', 'b'], '["SCOPE_a","SCOPE_b"]'],
] as const) {
  test(`sends the private message of profile A with ${what}`, async () => {
    const text = await textOf(service, '/api/private', { sub: 'auth0|é', scope });
    assert.equal(text, `{"message":"Hello from a private endpoint!","user":"auth0|é","scopes":${scopes}}`);
  });
}

test('sends the private message of profile A with authorities from the configured claim', async () => {
  const text = await textOf(scp, '/api/private', { scope: 'x', scp: ['a', 'b'] });
  assert.equal(
    text,
    '{"message":"Hello from a private endpoint!","user":"auth0|user","scopes":["SCOPE_a","SCOPE_b"]}',
  );
});

test('sends the subject, email, scope, issuer and audience of the token at /api/profile', async () => {
  const text = await textOf(service, '/api/profile', {
    email: 'u@example.test',
    scope: 'openid email',
    sub: 'auth0|7',
  });
  const { issuer, audience } = provider;
  const body = { userId: 'auth0|7', email: 'u@example.test', scope: 'openid email', issuer, audience };
  assert.equal(text, JSON.stringify(body));
});

test('sends null for claims that are missing from the token, and the audience unchanged [docs/how-a-request-is-checked.md]', async () => {
  const text = await textOf(service, '/api/profile', { aud: ['x', provider.audience] });
  const { issuer, audience } = provider;
  assert.equal(
    text,
    JSON.stringify({ userId: 'auth0|user', email: null, scope: null, issuer, audience: ['x', audience] }),
  );
});

test('sends the plain email claim, even null, and the scopes separated by spaces', async () => {
  const namespaced = { email: null, 'https://ns.example/email': 'no', scp: ['a', 'b'], scope: 'x' };
  const text = await textOf(scp, '/api/profile', namespaced);
  assert.equal(
    text,
    `{"userId":"auth0|user","email":null,"scope":"a b","issuer":"${provider.issuer}","audience":"${provider.audience}"}`,
  );
});

for (const levels of [4_000, 5_500]) {
  test(`does not fail on a claim that is nested ${levels} levels deep [C9]`, async () => {
    const { kid, privateKey } = provider.signingKey;
    const exp = Math.floor(service.clock.now() / 1000) + 60;
    const claims = JSON.stringify({ iss: provider.issuer, aud: provider.audience, sub: 'x', exp, email: 0 });
    const payload = claims.replace('"email":0', `"email":${'['.repeat(levels)}${']'.repeat(levels)}`);
    const token = rawJws(JSON.stringify({ alg: 'RS256', kid }), payload, (input) =>
      sign('sha256', input, privateKey),
    );
    const { status } = await service.ask('/api/profile', { token });
    assert.ok(status < 500, String(status));
    assert.equal((await service.ask('/api/profile', { token: provider.issue() })).status, 200);
  });
}

test('serves the routes of the scope policy only while it is on [docs/how-a-request-is-checked.md]', async () => {
  const claims = { scope: 'admin read:users' };
  assert.equal(await textOf(policed, '/api/admin', claims), '{"message":"Hello from the admin API!"}');
  assert.equal(await textOf(policed, '/api/users', claims), '{"message":"Hello from the users API!"}');
  for (const path of ['/api/admin', '/api/users']) {
    assert.equal((await service.ask(path, { token: provider.issue(claims) })).status, 404);
    assert.equal((await service.ask(path)).status, 404);
  }
});

for (const scope of ['read:users', 'write:users']) {
  test(`serves the users of the scope policy for ${scope} alone [docs/how-a-request-is-checked.md]`, async () => {
    assert.equal(await textOf(policed, '/api/users', { scope }), '{"message":"Hello from the users API!"}');
    const { status } = await policed.ask('/api/admin', { token: provider.issue({ scope }) });
    assert.equal(status, 403);
  });
}

test('sends an email claim that is a number as it is, and none that is an object', async () => {
  const emailOf = async (email: unknown) =>
    JSON.parse(await textOf(service, '/api/profile', { email })).email;

  assert.deepEqual([await emailOf(0), await emailOf({ at: 'a' }), await emailOf(['a'])], [0, null, null]);
});

test('accepts a bound token as Bearer only when DPoP is off [docs/dpop.md]', async (t) => {
  const token = provider.issue({ cnf: { jkt: 'x' } });
  assert.equal((await service.ask('/api/private', { token })).status, 401);
  const disabled = await startService({ provider, environment: { PROFILE: 'A', IDP_DPOP_MODE: 'DISABLED' } });
  t.after(() => disabled.stop());
  assert.equal((await disabled.ask('/api/private', { token })).status, 200);
});

for (const path of [
  '/api/private-scoped',
  '/api/messages',
  '/api/org/org_123456',
  '/api/roles',
  '/api/premium',
  '/api/feed',
]) {
  test(`has nothing at ${path}, a path of profile B`, async () => {
    assert.equal((await service.ask(path, { token: provider.issue() })).status, 404);
  });
}
