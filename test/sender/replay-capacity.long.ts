/* How many used proofs are remembered when nobody says how many. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createReplayStore } from '../../src/sender/replay.ts';
import { NOW } from '../token/issuer.ts';

const THUMBPRINT = '1'.repeat(43);
const MOST = 1_500_000;

test('takes a million entries unless told otherwise, and not many more', () => {
  const store = createReplayStore(330);
  let entries = 0;
  while (entries < MOST && store.record(THUMBPRINT, String(entries), NOW + (entries % 331), NOW) === 'new') {
    entries += 1;
  }
  assert.ok(entries >= 1_000_000 && entries < MOST, `${entries} entries`);
});
