/* The generated blocks are up to date. Not part of `npm test`, which a fork's new routes would fail. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readDocuments } from './documents.ts';

for (const { name, written, current } of await readDocuments()) {
  test(`${name} has what npm run docs would write`, () => assert.equal(written, current));
}
