/* What a record keeps when a later stage adds to it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { extendRecord, turnAway } from '../../src/gate/record.ts';
import { refuse } from '../../src/verify/base/refusal.ts';

const reply = { status: 403, fields: [], content: '' };

test('keeps what earlier stages have learnt, but no reply', () => {
  const record = extendRecord({ kid: 'a', issuerName: 'idp', isGone: false, reply }, { freshNonce: 'n' });
  const { kid, issuerName, isGone, freshNonce } = record;
  assert.deepEqual([kid, issuerName, isGone, freshNonce], ['a', 'idp', false, 'n']);
  assert.equal(record.reply, undefined);
});

test('is no refusal any more if a bug follows it [§6]', () => {
  const error = new Error('inside');
  const record = turnAway(turnAway({ kid: 'a' }, refuse('not_found')), error);
  assert.deepEqual([record.reason, record.refusal, record.thrown?.error], ['bug', undefined, error]);
  assert.equal(record.kid, 'a');
});
