/* Bodies of any form, split anywhere: a few of those that the fuzzer sends (test/evidence/fuzz/bodies.ts). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fuzzBodies } from '../../evidence/fuzz/bodies.ts';

test(
  'every body gets its own response, and no connection hangs, whatever arrives',
  { timeout: 60_000 },
  async () => {
    const { faults, answers } = await fuzzBodies(20_261_122, 600);
    assert.deepEqual(faults, []);
    assert.ok(answers > 300, `${answers} answers`);
  },
);
