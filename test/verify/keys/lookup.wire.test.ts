/* Names that are looked up for fetches, tunnels and the shared store: one question at a time for each. */
import assert from 'node:assert/strict';
import { PerformanceObserver, type PerformanceEntry } from 'node:perf_hooks';
import { test } from 'node:test';
import { createSharedReplayStore } from '../../../src/options/redis-replay.ts';
import { clock } from '../../../src/process/host.ts';
import { flawOf, sourceAt } from './fetch-fixture.ts';

/** Where nobody listens. */
const NOWHERE = 'localhost:1';

/** How many questions Node has asked the system for this name since. */
function countLookups() {
  const seen: PerformanceEntry[] = [];
  const observer = new PerformanceObserver((list) => seen.push(...list.getEntries()));
  observer.observe({ entryTypes: ['dns'] });

  return async () => {
    await new Promise(setImmediate);
    const entries = [...seen, ...observer.takeRecords()];
    observer.disconnect();
    return entries.filter(({ name }) => name === 'lookup').length;
  };
}

test('asks once for a name that two fetches, a tunnel and a store need at once, and anew after the answer [F13]', async () => {
  for (let round = 0; round < 2; round += 1) {
    const lookups = countLookups();
    const store = createSharedReplayStore(`redis://${NOWHERE}`, clock, () => {});
    const flaws = await Promise.all([
      flawOf(sourceAt(`https://${NOWHERE}/1`)),
      flawOf(sourceAt(`https://${NOWHERE}/2`)),
      flawOf(sourceAt('https://idp.test/'), undefined, `http://${NOWHERE}`),
    ]);
    store.close?.();

    const refused = ['connection-failed', 'ECONNREFUSED'];
    assert.deepEqual(flaws, [refused, refused, ['proxy-failed', 'ECONNREFUSED']]);
    assert.equal(await lookups(), 1);
  }
});

test('gives the failure of a name that cannot be found to everybody who asked', async () => {
  const flaws = await Promise.all(
    ['1', '2'].map((path) => flawOf(sourceAt(`https://nowhere.invalid/${path}`))),
  );
  for (const [reason] of flaws) assert.equal(reason, 'connection-failed');
});
