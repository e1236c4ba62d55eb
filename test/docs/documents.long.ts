/* The generated blocks are up to date. Not part of `npm test`, which a fork's new routes would fail. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readDocuments } from './documents.ts';
import { read } from './pages.ts';
import { PICTURES } from './where.ts';

for (const { name, written, current } of await readDocuments()) {
  test(`${name} has what npm run docs would write`, () => assert.equal(written, current));
}

for (const [name, current] of Object.entries(PICTURES)) {
  test(`${name} is what npm run docs would draw`, () => assert.equal(read(name), current));
}
