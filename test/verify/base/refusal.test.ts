/* Callers see these sentences, so `wording.json` has them once more: none changes unnoticed. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { refuse, Refused, REFUSALS } from '../../../src/verify/base/refusal.ts';

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

test('what is found of one request goes into no other that is refused alike', () => {
  const shared = new Refused(refuse('key-unknown').refusal, { kid: 'a', issuerName: 'idp' });
  const one = shared.with({ kid: 'b', freshNonce: 'one' });
  assert.deepEqual(one.found, { kid: 'b', issuerName: 'idp', freshNonce: 'one' });
  assert.deepEqual(shared.found, { kid: 'a', issuerName: 'idp' });
});

test('details of one refusal are of no other with its reason', () => {
  const { refusal } = refuse('scope-missing', { scopes: ['read'], description: 'read' });
  assert.deepEqual([refusal.scopes, refusal.description], [['read'], 'read']);
  const plain = refuse('scope-missing').refusal;
  assert.deepEqual([plain.scopes, plain.description === 'read'], [undefined, false]);
});
