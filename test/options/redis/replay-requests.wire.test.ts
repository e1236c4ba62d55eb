/* What callers get while the shared store is up, is down, and has many waiting requests. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Response } from '../../support/client.ts';
import type { TestService } from '../../support/service.ts';
import { BOUND, call, outcome, proofFor, startDpop, UNBOUND } from '../../verify/dpop/dpop-service.ts';
import { issue, NOW } from '../../verify/token/issuer.ts';
import { key } from '../../verify/sender-fixture.ts';
import { afterGreeting, startFakeStore, type FakeStore, type Say } from '../fake-store.ts';

const silent = afterGreeting(() => undefined);

interface Stand {
  readonly service: TestService;
  readonly store: FakeStore;
}

/** Polls until it holds, since nothing signals a new log line. */
async function until(isSo: () => boolean): Promise<void> {
  const end = performance.now() + 20_000;
  while (!isSo()) {
    assert.ok(performance.now() < end, 'it is not so for a long time');
    await new Promise(setImmediate);
  }
}

const lost = ({ logs }: TestService) => logs.filter(({ message }) => message === 'replay store lost');

async function startStand(t: TestContext, say?: Say, mode = 'ALLOWED'): Promise<Stand> {
  const store = await startFakeStore(t, say);
  const IDP_DPOP_REPLAY_STORE = `redis://:secret@127.0.0.1:${store.port}`;
  const service = await startDpop({ IDP_DPOP_REPLAY_STORE, IDP_DPOP_MODE: mode });
  await until(() => service.logs.some(({ message }) => message.startsWith('replay store')));
  return { service, store };
}

/** Asserts a 503 with Retry-After of one second and no challenge. */
function assertUnavailable({ status, headers, body, challenges }: Response): void {
  assert.deepEqual([status, headers['retry-after'], challenges], [503, '1', []]);
  assert.equal(body.error, 'temporarily_unavailable');
}

test('accepts a proof once, as the store replies [RFC 9449 §11.1]', async (t) => {
  const { service } = await startStand(t);
  const proof = proofFor(service);
  assert.equal(outcome(service, await call(service, { proof })), '200');
  assert.equal(outcome(service, await call(service, { proof })), '401 proof-replayed');
});

test('asks the store last, so that it records no refused proof', async (t) => {
  const { service, store } = await startStand(t);
  assert.equal(outcome(service, await call(service, { claims: { htm: 'POST' } })), '401 proof-htm');
  assert.deepEqual(store.commands, [['AUTH', 'secret'], ['PING']]);
});

for (const [what, say] of [
  ['an error', afterGreeting('-OOM command not allowed\r\n')],
  ['an error that ends the connection', afterGreeting('-READONLY x\r\n')],
  ['bytes that are not a reply', afterGreeting('+QUEUED\r\n')],
  ['the end of the connection', afterGreeting((_, socket) => void socket.destroy())],
  ['no greeting', () => '-NOAUTH x\r\n'],
] as const) {
  test(`answers 503 to a proof when the store responds with ${what}, and never falls back to a store of its own`, async (t) => {
    const { service } = await startStand(t, say);
    const proof = proofFor(service);
    for (let use = 0; use < 2; use += 1) {
      const response = await call(service, { proof });
      assertUnavailable(response);
      const refused = service.logs.findLast(({ message }) => message === 'request refused');
      assert.equal(refused?.reason, 'replay-store-unavailable');
    }
  });
}

test('serves Bearer, public routes and probes without the store, and refuses invalid proofs as usual', async (t) => {
  const { service } = await startStand(t, () => '-NOAUTH x\r\n');
  assertUnavailable(await call(service));
  assert.equal((await service.ask('/api/private', { token: UNBOUND })).status, 200);
  assert.equal((await service.ask('/api/public')).status, 200);
  assert.equal((await service.ask('/readyz')).status, 200);
  assert.equal((await call(service, { claims: { htm: 'POST' } })).status, 401);
  assert.equal((await service.ask('/api/private', { token: BOUND })).status, 401);
});

test('answers 503 to a request once it has waited a second for the store, and to later requests at once', async (t) => {
  const { service, store } = await startStand(t, silent);
  const waiting = call(service);
  await store.received(3);
  service.clock.advance(1_000);
  assertUnavailable(await waiting);
  assert.equal(lost(service)[0]?.reason, 'timeout');
  assertUnavailable(await call(service));
});

test('serves other requests while one waits for the store', async (t) => {
  const { service, store } = await startStand(t, silent);
  const waiting = call(service);
  await store.received(3);
  assert.equal((await service.ask('/api/private', { token: UNBOUND })).status, 200);
  store.sockets[0]?.write('+OK\r\n');
  assert.equal((await waiting).status, 200);
});

test('offers a nonce even when it refuses a proof because of the store [RFC 9449 §9]', async (t) => {
  const store = await startFakeStore(t, () => '-NOAUTH x\r\n');
  const service = await startDpop({
    IDP_DPOP_REPLAY_STORE: `redis://127.0.0.1:${store.port}`,
    IDP_DPOP_NONCE_SECRET: 'x'.repeat(32),
  });
  const token = issue({ cnf: { jkt: key.thumbprint }, exp: NOW + 600 });
  const nonce = (await call(service, { token })).headers['dpop-nonce'];
  service.clock.advance(60_000);
  const response = await call(service, { token, claims: { nonce } });
  assertUnavailable(response);
  assert.notEqual(response.headers['dpop-nonce'], undefined);
});

test('shows nothing of the address of the store in its log', async (t) => {
  const { service, store } = await startStand(t);
  await store.close();
  await until(() => lost(service).length > 0);
  assertUnavailable(await call(service));
  assert.doesNotMatch(JSON.stringify(service.logs), /secret|redis:/);
});
