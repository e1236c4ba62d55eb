/* Which answers are kept, and which make room. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Answers } from '../../../src/options/introspection/answers.ts';

const answer = { response: { active: true }, askedAtMillis: 1_000 };

test('keeps the latest answers, up to their time [§22]', () => {
  const answers = new Answers(2);
  for (const digest of ['a', 'b', 'c']) answers.keep(digest, answer, 2_000);
  const isKept = ['a', 'b', 'c'].map((digest) => answers.find(digest, 1_999) !== undefined);
  assert.deepEqual(isKept, [false, true, true]);
  assert.equal(answers.find('c', 2_000), undefined);
});

test('keeps none whose time is over, so that it takes the place of no other [§22]', () => {
  const answers = new Answers(1);
  answers.keep('a', answer, 2_000);
  answers.keep('b', answer, 1_000);
  assert.equal(answers.find('a', 1_500), answer);
});
