/* The generated blocks are what the code would generate today. Not part of `npm test`: a fork's new routes would
   fail it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readDocuments } from './documents.ts';

for (const { name, written, current } of await readDocuments()) {
  test(`${name} has what npm run docs would write`, () => assert.equal(written, current));
}
