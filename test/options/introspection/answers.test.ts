/* Which answers are kept, and which make room. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Answers } from '../../../src/options/introspection/introspect.ts';

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

test('drops one that is looked for when its time is over, so that it takes the place of no other [§22]', () => {
  const answers = new Answers(2);
  answers.keep('long', answer, 9_000);
  answers.keep('short', answer, 2_000);
  assert.equal(answers.find('short', 2_000), undefined);
  answers.keep('next', answer, 9_000);
  assert.equal(answers.find('long', 2_000), answer);
});

test('keeps a later answer about the same token in place of the earlier one, as the latest [§22]', () => {
  const answers = new Answers(2);
  const later = { ...answer, askedAtMillis: 1_500 };
  answers.keep('a', answer, 2_000);
  answers.keep('b', answer, 2_000);
  answers.keep('a', later, 2_500);
  answers.keep('c', answer, 2_000);
  const found = ['a', 'b', 'c'].map((digest) => answers.find(digest, 1_999));
  assert.deepEqual(found, [later, undefined, answer]);
});
