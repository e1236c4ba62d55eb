/* The error for what cannot be used: a terminal, a log or a ticket shows its lines. */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { ConfigurationError } from '../../src/settings/configuration-error.ts';

test('shows its problems as lines of printable ASCII, and the message is all of them', () => {
  const error = new ConfigurationError([' ~', '\x1f\x7f\x80', 'é\u2028\n\x1b[31m', '😀x']);
  const lines = [' ~', '???', '????[31m', '??x'];
  assert.deepEqual(error.problems, lines);
  assert.equal(error.message, lines.join('\n'));
  assert.equal(error.name, 'ConfigurationError');
});
