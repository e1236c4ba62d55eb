import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldValues } from '../../../src/verify/request/facts.ts';

test('takes no value of a field for the name of the next [RFC 9110 §5.1]', () => {
  const rawHeaders = ['X-Next', 'authorization', 'X-Other', 'Bearer x', 'X-Last', 'authorization'];
  assert.deepEqual(fieldValues(rawHeaders, 'authorization'), []);
});

test('reads each value of a field, in any letter case of its name, in their order [RFC 9110 §5.3]', () => {
  const rawHeaders = ['DPoP', 'one', 'dpo', 'two', 'dpop', 'three', 'DPOPS', 'four', 'dPoP', ''];
  assert.deepEqual(fieldValues(rawHeaders, 'dpop'), ['one', 'three', '']);
});

test('takes a name with blanks for no known one [RFC 9112 §5.1]', () => {
  assert.deepEqual(
    fieldValues(['Authorization ', 'Bearer x', ' authorization', 'Bearer y'], 'authorization'),
    [],
  );
});
