/* Every fault of the provider under load: no valid request is refused, fetches end and back off, recovery
   needs no restart (§7). */
import { strict as assert } from 'node:assert';
import { describe, test, type TestContext } from 'node:test';
import { startProvider } from '../../idp/provider.ts';
import { figures } from '../../support/figures.ts';
import type { Tally } from '../../support/load.ts';
import type { TestProcess } from '../../support/process.ts';
import { FetchWatch, until } from '../../support/watch.ts';
import { endFaults, FAULTS } from '../../faults/plans.ts';
import {
  addKey,
  assertUnavailable,
  assertUntroubled,
  openFixture,
  privately,
  startGoodLoad,
  unsignedToken,
  warnings,
} from '../../faults/process-fixture.ts';

const rows = figures('provider faults under load');
/** Five seconds for a fetch, and the time that a busy machine needs. */
const DEADLINE_SECONDS = 8;
/** Without the token cache, so that every request needs its key. */
const environment = { IDP_TOKEN_CACHE_ENTRIES: '0' };

// Made before the load begins.
const providers = await Promise.all(
  Array.from({ length: FAULTS.length + 2 }, () => startProvider({ host: '127.0.0.1' })),
);

const nextFixture = (context: TestContext, isDown = false) =>
  openFixture(context, { environment, isDown, provider: providers.pop()! });

/** The figures of every load. */
const loadFigures = (fault: string, tally: Tally) => ({
  fault,
  requests: tally.answered,
  refused: tally.countExcept('valid 200'),
  lost: tally.lost,
  'longest gap ms': Math.round(tally.longestGap),
  'p99 ms': tally.latencies.percentile(0.99),
});

describe('the service under load', { concurrency: 4, timeout: 300_000 }, () => {
  for (const { name, reason, begin } of FAULTS) {
    test(`goes on with the keys it holds, and recovers, when the fault of its provider is: ${name}`, async (t) => {
      const fixture = await nextFixture(t);
      const { provider, service } = fixture;
      const load = startGoodLoad(fixture);
      await begin(provider);
      const isRefused = name === 'connections refused';
      const isSecured = reason !== 'certificate-refused' && !isRefused;
      const watch = new FetchWatch(provider, isSecured ? 'discovery' : 'connections');
      t.after(() => watch.stop());
      // A missing key makes the service fetch; the caller learns that no keys are available, not that the
      // token is invalid.
      const rotated = addKey(provider, 'rotated in');
      assertUnavailable(await privately(fixture, rotated));
      if (isRefused) {
        // These attempts are not counted, but they delay the next one.
        const retryAfter = async () =>
          Number((await privately(fixture, unsignedToken())).headers['retry-after']);
        await until('the pause grows', async () => (await retryAfter()) >= 3, 20);
      } else {
        await until('there were three attempts', () => watch.starts.length >= 3, 40);
        const [first = 0, second = 0] = watch.gaps;
        assert.ok(second > first, `attempts after ${watch.gaps} s`);
      }
      await until('the sockets of the last attempt are gone', () => watch.isQuiet, DEADLINE_SECONDS);
      assert.ok(watch.longest < DEADLINE_SECONDS, `a fetch took ${watch.longest} s`);
      const attempts = watch.starts.length;
      await endFaults(provider);
      const recovery = await until('the keys are loaded again', () => timesLoaded(service) === 2, 40);
      assert.equal((await privately(fixture, rotated)).status, 200);
      const tally = await load.stop();
      rows.push({
        ...loadFigures(name, tally),
        attempts: attempts || 'uncounted',
        'pauses s': watch.gaps.map((gap) => gap.toFixed(1)).join(' '),
        'longest fetch s': watch.longest,
        'recovery s': recovery,
      });
      assertUntroubled(tally);
      assert.deepEqual(warnings(service), [`signing keys could not be fetched: ${reason}`]);
      await until('no socket is left', () => provider.openSockets === 0, DEADLINE_SECONDS);
    });
  }

  test('shares one fetch, and refuses no request, when its provider is slow', async (t) => {
    const fixture = await nextFixture(t);
    const { provider, service } = fixture;
    const load = startGoodLoad(fixture);
    await provider.fault('all', { delayMillis: 1_500 });
    const watch = new FetchWatch(provider);
    t.after(() => watch.stop());
    const token = addKey(provider, 'rotated in');
    const responses = await Promise.all(Array.from({ length: 20 }, () => privately(fixture, token)));
    assert.deepEqual(new Set(responses.map(({ status }) => status)), new Set([200]));
    assert.equal(watch.starts.length, 1);
    const tally = await load.stop();
    rows.push({
      ...loadFigures('slow (3 s in all)', tally),
      attempts: watch.starts.length,
      'longest fetch s': watch.longest,
    });
    assertUntroubled(tally);
    assert.deepEqual(warnings(service), []);
  });

  test('listens, is not ready and says when to come back, then recovers, when it starts before its provider', async (t) => {
    const fixture = await nextFixture(t, true);
    const { provider, service } = fixture;
    const status = async (path: string) => (await service.ask(path)).status;
    assert.deepEqual(
      [await status('/healthz'), await status('/readyz'), await status('/api/public')],
      [200, 503, 200],
    );
    await service.logged('signing keys could not be fetched');
    for (const token of [provider.issue(), unsignedToken()]) {
      assertUnavailable(await privately(fixture, token));
    }

    const retryAfter = async () =>
      Number((await privately(fixture, provider.issue())).headers['retry-after']);

    await until('the pause grows', async () => (await retryAfter()) >= 3, 20);
    await endFaults(provider);
    const recovery = await until('the service is ready', async () => (await status('/readyz')) === 200, 40);
    const responses = await Promise.all(
      Array.from({ length: 50 }, () => privately(fixture, provider.issue())),
    );
    assert.deepEqual(new Set(responses.map((response) => response.status)), new Set([200]));
    assert.deepEqual(warnings(service), ['signing keys could not be fetched: connection-failed']);
    rows.push({ fault: 'down at start-up', requests: 50, refused: 0, 'recovery s': recovery });
  });
});

const timesLoaded = ({ logs }: TestProcess) =>
  logs.filter(({ message }) => message === 'signing keys loaded').length;
