/* The probes, which need no token: whether the service lives and is ready (docs/how-a-request-is-checked.md). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { REFUSALS } from '../../src/verify/base/refusal.ts';
import { FetchError } from '../../src/verify/keys/jwks.ts';
import { startProvider, type Provider } from '../idp/provider.ts';
import { TestClock } from '../support/clock.ts';
import { startService } from '../support/service.ts';

let provider: Provider;

before(async () => {
  provider = await startProvider();
});

after(() => provider.stop());

for (const PROFILE of ['A', 'B']) {
  test(`serves the probes in profile ${PROFILE}, whatever the credentials [docs/how-a-request-is-checked.md]`, async (t) => {
    let canFetch = false;

    const fetchKeys = async () => {
      if (canFetch) return { keys: [provider.signingKey.publicJwk] };
      throw new FetchError('timeout');
    };

    const running = await startService({ provider, environment: { PROFILE }, fetchKeys });
    t.after(() => running.stop());
    const headers = { Authorization: ['Bearer a', 'Bearer b'] };

    const state = async () => {
      const responses = [
        await running.ask('/healthz', { headers }),
        await running.ask('/readyz', { headers }),
      ];
      return responses.map(({ status, text }) => [status, text]);
    };

    const unready = (message: string) => [503, JSON.stringify({ error: 'temporarily_unavailable', message })];
    assert.deepEqual(await state(), [
      [200, '{"status":"ok"}'],
      unready(REFUSALS.temporarily_unavailable['keys-unavailable']),
    ]);
    assert.equal((await running.ask('/readyz')).headers['retry-after'], '1');
    canFetch = true;
    await running.keys.refresh();
    assert.deepEqual(await state(), [
      [200, '{"status":"ok"}'],
      [200, '{"status":"ready"}'],
    ]);
    assert.equal((await running.ask('/readyz', { method: 'HEAD' })).status, 200);
    assert.equal((await running.ask('/healthz', { method: 'POST' })).status, 405);
    running.beginStopping();
    assert.deepEqual(await state(), [
      [200, '{"status":"ok"}'],
      unready(REFUSALS.temporarily_unavailable['shutting-down']),
    ]);
  });
}

test('a service stops retrying to fetch keys once it is stopped, even if it has never had keys', async () => {
  const clock = new TestClock();
  const fetchKeys = () => Promise.reject(new FetchError('timeout'));
  const running = await startService({ provider, clock, fetchKeys });
  assert.equal(clock.pending.length, 1);
  await running.stop();
  assert.deepEqual(clock.pending, []);
});
