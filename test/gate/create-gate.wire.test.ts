/* Gates with parts and keys of one's own. */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { authenticated, createGate } from '../../src/gate.ts';
import { throughProxy } from '../../src/options/proxy.ts';
import { redisReplayStore } from '../../src/options/redis/replay.ts';
import { createProof, createProofKey } from '../../src/testing.ts';
import { makeIssuer } from '../support/issuer.ts';
import { startProvider } from '../idp/provider.ts';
import { startProxy } from '../idp/proxy.ts';
import { startFakeStore } from '../options/fake-store.ts';

const BOUNDED = { timeout: 60_000 };

const requestWith = (...rawHeaders: string[]) => ({
  method: 'GET',
  url: '/orders',
  rawHeaders: ['Host', 'api.test', ...rawHeaders],
});

test('a gate with a proxy fetches keys through it', BOUNDED, async (t) => {
  const [provider, proxy] = await Promise.all([startProvider(), startProxy()]);
  t.after(() => Promise.all([provider.stop(), proxy.stop()]));
  const { domain, audience } = provider;
  const gate = createGate({ domain, audience, connect: throughProxy(`http://127.0.0.1:${proxy.port}`) });
  t.after(gate.close);
  const verdict = await gate.check(requestWith('Authorization', `Bearer ${provider.issue()}`), authenticated);
  assert.equal(verdict.refusal, undefined);
  assert.deepEqual(new Set(proxy.asked.map(({ target }) => target)), new Set([`localhost:${provider.port}`]));
});

test('gates with a shared replay store accept a proof once [RFC 9449 §11.1]', BOUNDED, async (t) => {
  const issuer = makeIssuer();
  const store = await startFakeStore(t);
  const replayStore = redisReplayStore(`redis://127.0.0.1:${store.port}`);
  const gates = [1, 2].map(() => createGate({ ...issuer.options, dpopMode: 'REQUIRED', replayStore }));
  t.after(() => gates.forEach((gate) => gate.close()));
  const key = createProofKey();
  const token = issuer.boundToken(key);
  const dpop = createProof(key, { method: 'GET', url: 'http://api.test/orders' }, token);
  const request = requestWith('Authorization', `DPoP ${token}`, 'DPoP', dpop);

  const statuses: unknown[] = [];
  for (const gate of gates) {
    let status: number | undefined = 503;
    // Until the store has greeted.
    while (status === 503) {
      await new Promise(setImmediate);
      status = (await gate.check(request, authenticated)).refusal?.status;
    }
    statuses.push(status);
  }
  assert.deepEqual(statuses, [undefined, 401]);
});

test(
  'a gate refuses with 503 after five seconds when a custom fetchKeys never settles',
  BOUNDED,
  async (t) => {
    const deadline = new AbortController();
    const { mock } = t.mock.method(AbortSignal, 'timeout', () => deadline.signal);
    const issuer = makeIssuer();
    const gate = createGate({ ...issuer.options, fetchKeys: () => new Promise(() => {}) });
    t.after(gate.close);
    const verdict = gate.check(requestWith('Authorization', `Bearer ${issuer.token()}`), authenticated);

    deadline.abort();
    assert.equal((await verdict).refusal?.status, 503);
    assert.deepEqual(
      mock.calls.map((call) => call.arguments),
      [[5_000]],
    );
  },
);

test(
  "responds with 503, and leaves no rejection unhandled, when a fetchKeys of one's own throws",
  BOUNDED,
  async (t) => {
    const deadline = new AbortController();
    t.mock.method(AbortSignal, 'timeout', () => deadline.signal);
    const unhandled = t.mock.fn();
    process.on('unhandledRejection', unhandled);
    t.after(() => process.off('unhandledRejection', unhandled));
    const issuer = makeIssuer();

    const fetchKeys = () => {
      throw new Error('no keys');
    };

    const gate = createGate({ ...issuer.options, log: undefined, fetchKeys });
    t.after(gate.close);
    const request = requestWith('Authorization', `Bearer ${issuer.token()}`);
    assert.equal((await gate.check(request, authenticated)).refusal?.status, 503);

    deadline.abort();
    await new Promise(setImmediate);
    assert.equal(unhandled.mock.callCount(), 0);
  },
);

test('a log function gets null for the age of keys until a fetch succeeds [docs/logs-and-metrics.md]', async (t) => {
  const { options, token } = makeIssuer();
  const failures: unknown[] = [];
  const gate = createGate({
    ...options,
    fetchKeys: () => Promise.reject(new Error('down')),
    log: (_, message, fields) => message === 'signing keys could not be fetched' && failures.push(fields),
  });
  t.after(gate.close);
  const request = requestWith('Authorization', `Bearer ${token()}`);
  assert.equal((await gate.check(request, authenticated)).refusal?.status, 503);
  const ages = failures.map((fields) => Object(fields).heldForSeconds);
  assert.deepEqual(ages, [null]);
});
