import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startProvider, type Provider } from '../idp/provider.ts';
import { TestClock } from '../support/clock.ts';
import { startService, type TestService } from '../support/service.ts';

const NOW = Date.UTC(2031, 1, 3, 4, 5, 6, 7);
const STAMP = '2031-02-03T04:05:06.007Z';

let provider: Provider;
let service: TestService;
let other: TestService;

before(async () => {
  provider = await startProvider({ now: () => NOW });
  service = await startService({ provider, clock: new TestClock(NOW) });
  const environment = {
    IDP_ORG_ID: 'org_9',
    IDP_CLAIM_NAMESPACE: 'https://ns.example/',
    IDP_SCOPE_CLAIM: 'scp',
  };
  other = await startService({ provider, clock: new TestClock(NOW), environment });
});

after(async () => {
  await service.stop();
  await other.stop();
  await provider.stop();
});

const premium = { subscription: 'premium', verified: true };

for (const [path, claims, body] of [
  ['/api/public', undefined, { message: 'Hello from a public endpoint!', timestamp: STAMP }],
  ['/api/private', {}, { message: 'Hello from a private endpoint!', user: 'auth0|user', timestamp: STAMP }],
  [
    '/api/private-scoped',
    { scope: 'openid read:messages' },
    {
      message: 'Hello from a private endpoint that needs the scope read:messages!',
      user: 'auth0|user',
      scope: 'openid read:messages',
      timestamp: STAMP,
    },
  ],
  [
    '/api/messages',
    { scope: 'read:messages' },
    {
      messages: [
        { id: 1, text: 'Hello' },
        { id: 2, text: 'World' },
      ],
    },
  ],
  ['/api/admin', { scope: 'admin:access' }, { message: 'Hello, administrator!', userId: 'auth0|user' }],
  ['/api/org/org_123456', { org_id: 'org_123456' }, { message: 'Hello, member of the organisation!' }],
  ['/api/org/another', { org_id: 'org_123456' }, { message: 'Hello, member of the organisation!' }],
  ['/api/roles', { roles: ['viewer', 'editor'] }, { message: 'Hello, editor and viewer!' }],
  ['/api/premium', premium, { message: 'Hello, premium subscriber!' }],
  ['/api/feed', { sub: 'Zoë' }, { message: 'Welcome back, Zoë!', personalizedContent: true }],
  ['/api/feed', undefined, { message: 'Welcome, guest!', personalizedContent: false }],
] as const) {
  const whom = claims === undefined ? 'without a token' : `for ${JSON.stringify(claims)}`;

  test(`sends the body of ${path} ${whom}, with its members in order`, async () => {
    const response = await service.ask(path, claims === undefined ? {} : { token: provider.issue(claims) });
    assert.equal(response.status, 200);
    assert.equal(response.text, JSON.stringify(body));
  });
}

test('sends the current time in each response, even if the clock was set back', async (t) => {
  const clock = new TestClock(NOW);
  const { ask, stop } = await startService({ provider, clock });
  t.after(stop);
  for (const millis of [0, 0, 1, 999, -999]) {
    clock.advance(millis);
    const { text } = await ask('/api/public', {});
    assert.equal(JSON.parse(text).timestamp, new Date(clock.now()).toISOString());
  }
});

for (const [path, claims, description] of [
  ['/api/private-scoped', { scope: 'read' }, 'the token lacks a required scope'],
  ['/api/private-scoped', { scp: 'read:messages' }, 'the token lacks a required scope'],
  ['/api/messages', { scope: 'read:messages:all' }, 'the token lacks a required scope'],
  ['/api/admin', { scope: 'admin' }, 'the token lacks a required scope'],
  ['/api/org/org_1', { org_id: 'org_1' }, 'the claim org_id is missing or has another value'],
  ['/api/org/org_123456', {}, 'the claim org_id is missing or has another value'],
  ['/api/org/org_123456', { org_id: ['org_123456'] }, 'the claim org_id is missing or has another value'],
  ['/api/roles', { roles: ['editor'] }, 'the claim roles is missing or lacks a required value'],
  ['/api/roles', { roles: ['viewer'] }, 'the claim roles is missing or lacks a required value'],
  [
    '/api/premium',
    { ...premium, subscription: 'Premium' },
    'the claims do not satisfy: subscription is premium and verified is true',
  ],
  [
    '/api/premium',
    { verified: true },
    'the claims do not satisfy: subscription is premium and verified is true',
  ],
  [
    '/api/premium',
    { ...premium, verified: 'true' },
    'the claims do not satisfy: subscription is premium and verified is true',
  ],
  [
    '/api/premium',
    { ...premium, verified: 1 },
    'the claims do not satisfy: subscription is premium and verified is true',
  ],
  [
    '/api/premium',
    { ...premium, verified: false },
    'the claims do not satisfy: subscription is premium and verified is true',
  ],
  [
    '/api/premium',
    { subscription: 'premium' },
    'the claims do not satisfy: subscription is premium and verified is true',
  ],
] as const) {
  test(`refuses ${JSON.stringify(claims)} at ${path} [docs/refusals.md]`, async () => {
    const response = await service.ask(path, { token: provider.issue(claims) });
    assert.equal(response.status, 403);
    assert.equal(response.text, JSON.stringify({ error: 'insufficient_scope', message: description }));
  });
}

test('uses the configured organisation, namespace and scope claim', async () => {
  const ask = async (path: string, claims: Record<string, unknown>) =>
    (await other.ask(path, { token: provider.issue(claims) })).status;

  assert.equal(await ask('/api/org/x', { org_id: 'org_9' }), 200);
  assert.equal(await ask('/api/org/x', { org_id: 'org_123456' }), 403);
  assert.equal(await ask('/api/org/x', { org_id: 'org_9', 'https://ns.example/org_id': null }), 403);
  assert.equal(
    await ask('/api/premium', {
      'https://ns.example/subscription': 'premium',
      'https://ns.example/verified': true,
    }),
    200,
  );
  assert.equal(await ask('/api/messages', { scope: 'read:messages' }), 403);
});

test('shows the scopes of an array separated by spaces', async () => {
  const { body } = await other.ask('/api/private-scoped', {
    token: provider.issue({ scp: ['read:messages', 'x'], scope: 'y' }),
  });
  assert.equal(body.scope, 'read:messages x');
});

for (const path of ['/api/profile', '/api/users', '/api/org', '/api/org/a/b', '/']) {
  test(`has nothing at ${path}, which is no path of profile B`, async () => {
    assert.equal((await service.ask(path, { token: provider.issue() })).status, 404);
  });
}
