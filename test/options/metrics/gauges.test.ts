/* The gauges that are read for each scrape: which value each has, and what several gates have together. */
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { gaugesOf, processGauges } from '../../../src/options/metrics/gauges.ts';
import { LocalReplayStore } from '../../../src/verify/dpop/replay.ts';

const MEMORY = { rss: 3, heapUsed: 1, heapTotal: 2, external: 0, arrayBuffers: 0 };

/** The gauges of the memory, while Node learns this about it. */
function memoryGauges(learn: () => typeof MEMORY) {
  mock.method(process, 'memoryUsage', learn);
  try {
    const { process_resident_memory_bytes, nodejs_heap_size_used_bytes, nodejs_heap_size_total_bytes } =
      Object.fromEntries(processGauges());
    return [process_resident_memory_bytes, nodejs_heap_size_used_bytes, nodejs_heap_size_total_bytes];
  } finally {
    mock.restoreAll();
  }
}

test('shows the memory, the used heap and the held heap, each under its name', () => {
  assert.deepEqual(
    memoryGauges(() => MEMORY),
    [3, 1, 2],
  );
});

test('shows NaN for all of the memory while Node cannot learn it', () => {
  const gauges = memoryGauges(() => {
    throw new Error('EMFILE');
  });
  assert.deepEqual(gauges, [NaN, NaN, NaN]);
});

test('names version and profile once, with the value 1, for gates of the same profile', () => {
  const watched = {
    name: 'gate',
    issuers: [],
    replayStore: new LocalReplayStore(60),
    routes: [],
    ownRoutes: [],
  };
  const named = gaugesOf([watched, watched, watched]).filter(([name]) => name.startsWith('gatehouse_info{'));
  assert.deepEqual(
    named.map(([, value]) => value),
    [1],
  );
});
