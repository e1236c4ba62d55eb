/* Every clause that the code cites is cited by a test, and the other way round. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clausesIn, commentsOf } from './citations.ts';
import { absent, readClauses } from './clause-index.ts';

const index = readClauses();

for (const [text, clauses] of [
  ['RFC 9449 §4.3(12), second half; §6.1', ['RFC 9449 §4.3(12)', 'RFC 9449 §6.1']],
  ['RFC 7515 §5.2(2), (6), (7)', ['RFC 7515 §5.2(2)', 'RFC 7515 §5.2(6)', 'RFC 7515 §5.2(7)']],
  [
    'RFC 9110 §10.2.3, §15.5.6. RFC 7517 §4.2-4.4',
    ['RFC 9110 §10.2.3', 'RFC 9110 §15.5.6', 'RFC 7517 §4.2', 'RFC 7517 §4.3', 'RFC 7517 §4.4'],
  ],
  [
    '(docs/how-a-request-is-checked.md §5, RFC 7515 §4.1.4; RFC 3986 §3.1; docs/keys.md §6)',
    ['RFC 7515 §4.1.4'],
  ],
  ['the RFC 7638 thumbprint (the Fetch standard §3.3.2)', ['RFC 7638', 'Fetch §3.3.2']],
  ['[docs/keys.md §4, OpenID Connect Core §2, §3.3.2.11]', []],
] as const) {
  test(`the index reads the clauses of "${text.replaceAll('§', 'section ')}"`, () =>
    assert.deepEqual(clausesIn(text), clauses));
}

test('the index reads comments and no code', () => {
  const source = "const a = 'https://x'; // one\n/** two\n * three */\n// four\n// five\nconst b = '§1';";
  assert.deepEqual(commentsOf(source), ['// one', '/** two three */', '// four five']);
});

test('every clause that the code cites is cited by a test', () => assert.deepEqual(index.untested, []));

test('every clause that a test cites is cited by the code', () => assert.deepEqual(index.unheld, []));

test('the index has a clause of every standard that it covers', () => assert.deepEqual(absent(index), []));
