/* What is generated in the documents is what the code says today. Not among the tests of a fork's day: its
   own rows belong in its README. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readDocuments } from './documents.ts';

for (const { name, written, current } of await readDocuments()) {
  test(`${name} has what npm run docs would write`, () => assert.equal(written, current));
}
