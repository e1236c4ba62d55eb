/* The sentences that callers see are wire text: `wording.json` beside this file has them once more, so that
   none changes unnoticed. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import * as refusal from '../../src/base/refusal.ts';

/** By the name of its table, each reason with its sentence. */
const tables = Object.fromEntries(
  Object.entries(refusal).filter(([, value]) => typeof value === 'object' && value !== null),
) as Readonly<Record<string, Readonly<Record<string, unknown>>>>;

test('every refusal has the sentence that callers know', () => {
  const wording: unknown = JSON.parse(readFileSync(new URL('wording.json', import.meta.url), 'utf8'));
  assert.deepEqual(JSON.parse(JSON.stringify(tables)), wording);
});

test('no two reasons of a table have one sentence', () => {
  for (const sentences of Object.values(tables)) {
    assert.equal(new Set(Object.values(sentences).map(String)).size, Object.keys(sentences).length);
  }
});
