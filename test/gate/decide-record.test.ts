/* What a record keeps when a later stage adds to it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { extendRecord, turnAway, type RequestRecord } from '../../src/gate/decide.ts';
import { refuse } from '../../src/verify/base/refusal.ts';

const reply = { status: 403, fields: [], content: '' };

test('keeps what earlier stages have learnt, but no reply', () => {
  const record = extendRecord({ kid: 'a', issuerName: 'idp', isGone: false, reply }, { freshNonce: 'n' });
  const { kid, issuerName, isGone, freshNonce } = record;
  assert.deepEqual([kid, issuerName, isGone, freshNonce], ['a', 'idp', false, 'n']);
  assert.equal(record.reply, undefined);
});

/** Others have tests of their own. */
const MEMBERS = [
  'facts',
  'route',
  'demands',
  'caller',
  'crossOrigin',
  'kid',
  'issuerName',
  'freshNonce',
  'isGone',
  'thrown',
  'reason',
  'bug',
] as const satisfies readonly (keyof RequestRecord)[];

for (const name of MEMBERS) {
  test(`keeps ${name} until a later stage has another`, () => {
    const [earlier, later] = ['earlier', 'later'].map((value) => ({ [name]: value }) as RequestRecord);
    assert.equal(extendRecord(earlier!, {})[name], 'earlier');
    assert.equal(extendRecord({}, later!)[name], 'later');
    assert.equal(extendRecord(earlier!, later!)[name], 'later');
  });
}

test('stays the same refusal when a stage adds its reply', () => {
  const refused = turnAway({}, refuse('not_found'));
  const { reason, refusal } = extendRecord(refused, { reply });
  assert.deepEqual([reason, refusal], ['not_found', refused.refusal]);
  assert.ok(refusal);
});

test('is no refusal any more if a bug follows it [§6]', () => {
  const error = new Error('inside');
  const record = turnAway(turnAway({ kid: 'a' }, refuse('not_found')), error);
  assert.deepEqual([record.reason, record.refusal, record.thrown?.error], ['bug', undefined, error]);
  assert.equal(record.kid, 'a');
});
