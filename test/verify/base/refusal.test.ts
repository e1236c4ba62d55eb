/* Callers see these sentences, so `wording.json` has them once more: none changes unnoticed. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { REFUSALS } from '../../../src/verify/base/refusal.ts';

test('every refusal has its fixed sentence', () => {
  const wording: unknown = JSON.parse(readFileSync(new URL('wording.json', import.meta.url), 'utf8'));
  assert.deepEqual(REFUSALS, wording);
});

test('no two reasons of a kind share a sentence, except the empty one', () => {
  for (const sentences of Object.values(REFUSALS)) {
    const told = Object.values(sentences).filter((sentence) => sentence !== '');
    assert.equal(new Set(told).size, told.length);
  }
});
