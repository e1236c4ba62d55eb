/* The default capacity of the replay store. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LocalReplayStore } from '../../../src/verify/dpop/replay.ts';
import { NOW } from '../token/issuer.ts';

const THUMBPRINT = '1'.repeat(43);
const CAPACITY = 1_048_576;

test('has room for 1,048,576 used proofs by default, and for no more [docs/dpop.md]', () => {
  const store = new LocalReplayStore(330);
  let entries = 0;
  while (entries <= CAPACITY && store.record(THUMBPRINT, String(entries), NOW + 330, NOW) === 'new') {
    entries += 1;
  }
  assert.equal(entries, CAPACITY);
});
