/* The short form of evidence/faults/provider.ts: the built service while its provider fails, under a little
   load (docs/keys.md). */
import { strict as assert } from 'node:assert';
import { describe, test } from 'node:test';
import { endFaults, FAULTS } from './plans.ts';
import {
  addKey,
  assertUnavailable,
  assertUntroubled,
  openFixture,
  privately,
  startGoodLoad,
  warnings,
} from './process-fixture.ts';

/** Faults that end a fetch; others take its five seconds. */
const NAMES = ['500', '10 MB', 'expired certificate', 'name that does not resolve'];
const SHORT = FAULTS.filter(({ name }) => NAMES.includes(name));

describe('the process', { concurrency: 4, timeout: 120_000 }, () => {
  for (const { name, reason, begin } of SHORT) {
    test(`answers valid requests, warns once and recovers by itself when the fault of its provider is: ${name}`, async (t) => {
      const fixture = await openFixture(t);
      const { provider, service } = fixture;
      const load = startGoodLoad(fixture, { connections: 2 });
      await begin(provider);
      const rotated = addKey(provider, 'rotated in');
      assertUnavailable(await privately(fixture, rotated));
      await endFaults(provider);
      await service.logged('signing keys loaded', 2);
      assert.equal((await privately(fixture, rotated)).status, 200);
      assertUntroubled(await load.stop());
      assert.deepEqual(warnings(service), [`signing keys could not be fetched: ${reason}`]);
    });
  }

  test('listens but is not ready while its provider is down, and is ready once the provider is up', async (t) => {
    const fixture = await openFixture(t, { isDown: true });
    const { provider, service } = fixture;
    await service.logged('signing keys could not be fetched');
    const statusOf = async (path: string) => (await service.ask(path)).status;
    assert.deepEqual(
      [await statusOf('/healthz'), await statusOf('/readyz'), await statusOf('/api/public')],
      [200, 503, 200],
    );
    assertUnavailable(await privately(fixture, provider.issue()));
    await endFaults(provider);
    await service.logged('signing keys loaded');
    assert.deepEqual(
      [await statusOf('/readyz'), (await privately(fixture, provider.issue())).status],
      [200, 200],
    );
  });
});
