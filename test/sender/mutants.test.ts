/* What changes of the checks on presentation would otherwise go unseen (npm run mutants). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createNonces } from '../../src/sender/nonce.ts';

test('gives the nonce that every replica gives, of whatever version, for this secret and time [RFC 9449 §9]', () => {
  assert.equal(createNonces('s'.repeat(32)).present(1_800_000_000_000), 'dTAJ5snXWHvL9YnimlMMF815NMVpQFn8om8luQssmVo');
});
