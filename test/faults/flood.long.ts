/* The short form of evidence/faults/flood.ts and rotation.ts: a flood of unknown keys, and a withdrawn one
   (docs/keys.md, F1, F3). */
import { strict as assert } from 'node:assert';
import { describe, test } from 'node:test';
import { startLoad } from '../support/load.ts';
import {
  addKey,
  assertUntroubled,
  openFixture,
  privately,
  startGoodLoad,
  unsignedShot,
  warnings,
} from './process-fixture.ts';

describe('the process', { concurrency: 2, timeout: 120_000 }, () => {
  test('fetches once in five seconds for two thousand unknown keys, and serves valid requests meanwhile', async (t) => {
    const fixture = await openFixture(t);
    const { provider, service } = fixture;
    provider.resetCounts();
    const beside = startGoodLoad(fixture, { connections: 2 });
    const start = performance.now();
    let left = 2_000;

    const next = () => {
      left -= 1;
      return left >= 0 ? unsignedShot('flood') : undefined;
    };

    const { tally, ended } = startLoad({ port: service.port, connections: 8, next });
    await ended;
    assertUntroubled(await beside.stop());
    assert.deepEqual([tally.except('flood 401'), tally.lost, tally.answered], [{}, 0, 2_000]);
    // One, unless a busy machine prolongs the flood.
    const { discovery } = provider.counts;
    assert.ok(
      discovery >= 1 && discovery <= 1 + Math.floor((performance.now() - start) / 5_000),
      `${discovery} fetches`,
    );
    assert.deepEqual(warnings(service), []);
  });

  test('refuses a cached token once its key has been withdrawn [F3]', async (t) => {
    const fixture = await openFixture(t);
    const { provider } = fixture;
    const withdrawn = provider.issue();
    assert.equal((await privately(fixture, withdrawn)).status, 200);
    const token = addKey(provider, 'rotated in');
    const { publicJwk } = provider.signingKey;
    provider.publish({ keys: [{ ...publicJwk, kid: 'rotated in' }] });
    assert.equal((await privately(fixture, withdrawn)).status, 200);
    assert.equal((await privately(fixture, token)).status, 200);
    const { status, body } = await privately(fixture, withdrawn);
    assert.deepEqual([status, body.error], [401, 'invalid_token']);
  });
});
