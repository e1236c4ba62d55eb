/* What callers get with a revocation store: who is refused, and how, while it is up and while it is down. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { authenticated, createGate } from '../../../src/gate.ts';
import { createMetrics } from '../../../src/metrics.ts';
import { createRevocations } from '../../../src/revocations.ts';
import { makeIssuer } from '../../support/issuer.ts';
import type { TestService } from '../../support/service.ts';
import { until } from '../../support/watch.ts';
import { startFakeStore, type FakeStore, type Say } from '../fake-store.ts';
import { BOUND, call, outcome, proofFor, startDpop, UNBOUND } from '../../verify/dpop/dpop-service.ts';
import { issue, NOW } from '../../verify/token/issuer.ts';
import { except, keyFor, storeWith } from './revocations-fixture.ts';

interface Stand {
  readonly service: TestService;
  readonly store: FakeStore;
  readonly entries: Map<string, string>;
}

async function startStand(t: TestContext, say?: Say, more: Record<string, string> = {}): Promise<Stand> {
  const entries = new Map<string, string>();
  const store = await startFakeStore(t, say ?? storeWith(entries));
  const REVOCATION_STORE = `redis://:secret@127.0.0.1:${store.port}`;
  const service = await startDpop({ REVOCATION_STORE, IDP_DPOP_MODE: 'ALLOWED', ...more });
  const isHeard = () => service.logs.some(({ message }) => message.startsWith('revocation store'));
  await until('the store was heard of', isHeard, 20);
  return { service, store, entries };
}

test('refuses a revoked token with 401, its own reason and sentence, and tells nothing of it', async (t) => {
  const { service, entries } = await startStand(t);
  const token = issue({ jti: 'secret-id', scope: 'admin' });
  assert.equal((await service.ask('/api/private', { token })).status, 200);
  entries.set(keyFor('jti', 'secret-id'), '');
  const { status, body, challenges } = await service.ask('/api/private', { token });
  assert.deepEqual([status, body.error], [401, 'invalid_token']);
  assert.match(challenges[0] ?? '', /error="invalid_token", error_description="the token has been revoked"$/);
  const line = service.logs.at(-1);
  assert.deepEqual([line?.reason, line?.issuer], ['revoked', 'idp']);
  assert.equal(typeof line?.kid, 'string');
  assert.doesNotMatch(JSON.stringify(service.logs), /secret/);
});

test('uses up no proof of a revoked token, and finds it revoked before a wrong proof or a missing scope', async (t) => {
  const { service, entries } = await startStand(t);
  const proof = proofFor(service);
  entries.set(keyFor('sub', 'auth0|user'), String(NOW));
  assert.equal(outcome(service, await call(service, { proof })), '401 revoked');
  assert.equal(outcome(service, await call(service, { claims: { htm: 'POST' } })), '401 revoked');
  entries.clear();
  assert.equal(outcome(service, await call(service, { proof })), '200');
  assert.equal(outcome(service, await call(service, { proof })), '401 proof-replayed');
});

test('asks nothing for public routes, and for requests without credentials', async (t) => {
  const { service, store } = await startStand(t);
  const before = store.commands.length;
  assert.equal((await service.ask('/api/public', { token: UNBOUND })).status, 200);
  assert.equal((await service.ask('/api/public')).status, 200);
  assert.equal((await service.ask('/api/private')).status, 401);
  assert.equal((await service.ask('/readyz')).status, 200);
  assert.equal(store.commands.length, before);
});

for (const [what, say] of [
  ['an error', except('MGET', '-NOPERM x\r\n')],
  ['another form', except('MGET', '+QUEUED\r\n')],
  ['no greeting', () => '-NOAUTH x\r\n'],
] as const) {
  test(`answers 503 to exactly the requests that need the store when it replies with ${what} [J7]`, async (t) => {
    const { service } = await startStand(t, say);
    for (const token of [UNBOUND, issue({ scope: 'admin', jti: 'other' })]) {
      const { status, headers, body, challenges } = await service.ask('/api/private', { token });
      assert.deepEqual([status, headers['retry-after'], challenges], [503, '1', []]);
      assert.equal(body.error, 'temporarily_unavailable');
      assert.equal(service.logs.at(-1)?.reason, 'revocation-store-unavailable');
    }
    assert.equal(outcome(service, await call(service)), '503 revocation-store-unavailable');
    assert.equal((await service.ask('/api/public')).status, 200);
    assert.equal((await service.ask('/readyz')).status, 200);
    assert.equal((await service.ask('/api/private')).status, 401);
    assert.equal((await service.ask('/api/private', { token: `${UNBOUND.slice(0, -4)}AAAA` })).status, 401);
    assert.equal((await service.ask('/api/private', { token: issue({ exp: NOW }) })).status, 401);
  });
}

test('counts what the store says, and shows whether it responds', async (t) => {
  const entries = new Map<string, string>();
  const store = await startFakeStore(t, storeWith(entries));
  const issuer = makeIssuer();
  const metrics = createMetrics();
  const revocations = createRevocations({ store: `redis://127.0.0.1:${store.port}` });
  t.after(revocations.close);
  const gate = createGate({ ...issuer.options, metrics, revocations });
  t.after(gate.close);

  const checks = () =>
    metrics
      .text()
      .match(/^gatehouse_revocation_(?:checks_total\{.*|store_up) .*$/gm)
      ?.map((line) => line.replace(/^gatehouse_revocation_/, ''));

  const figures = (clear: number, revoked: number, unavailable: number, up: number) => [
    `checks_total{result="clear"} ${clear}`,
    `checks_total{result="revoked"} ${revoked}`,
    `checks_total{result="unavailable"} ${unavailable}`,
    `store_up ${up}`,
  ];

  const ask = (claims: object) => {
    const rawHeaders = ['Host', 'api.test', 'Authorization', `Bearer ${issuer.token({ ...claims })}`];
    return gate.check({ method: 'GET', url: '/', rawHeaders }, authenticated);
  };

  await until('the store is ready', () => checks()?.at(-1) === 'store_up 1', 20);
  assert.deepEqual(checks(), figures(0, 0, 0, 1));
  await ask({ jti: 'a' });
  entries.set(keyFor('jti', 'b', `https://${issuer.options.domain}/`), '');
  await ask({ jti: 'b' });
  store.say = except('MGET', '-NOPERM x\r\n');
  await ask({ jti: 'c' });
  assert.deepEqual(checks(), figures(1, 1, 1, 0));
});

test('has no metrics of revocation without a store', (t) => {
  const metrics = createMetrics();
  const gate = createGate({ ...makeIssuer().options, metrics });
  t.after(gate.close);
  assert.doesNotMatch(metrics.text(), /gatehouse_revocation/);
});

test('serves replay and revocation from one store over two connections', async (t) => {
  const entries = new Map<string, string>();
  const store = await startFakeStore(t, storeWith(entries));
  const address = `redis://127.0.0.1:${store.port}`;
  const service = await startDpop({
    REVOCATION_STORE: address,
    IDP_DPOP_REPLAY_STORE: address,
    IDP_DPOP_MODE: 'ALLOWED',
  });
  for (const name of ['replay', 'revocation']) {
    const isReady = () => service.logs.some(({ message }) => message === `${name} store ready`);
    await until(`the ${name} store is ready`, isReady, 20);
  }
  assert.equal(outcome(service, await call(service, { token: BOUND })), '200');
  assert.deepEqual(
    store.commands.slice(-2).map(([command]) => command),
    ['MGET', 'SET'],
  );
  assert.equal(store.sockets.length, 2);
});
