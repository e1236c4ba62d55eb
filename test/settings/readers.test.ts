/* The readers of text: what value each gives, for the rule of the option to check. */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import {
  anyOrList,
  boolean,
  inLowerCase,
  integer,
  inUpperCase,
  list,
  listOrNone,
  SettingProblem,
  text,
  type RawValue,
  type Reader,
} from '../../src/settings/entry.ts';
import { integer as wholeNumber, listOf, textWithoutBlanks } from '../../src/verify/base/option.ts';

const show = (value: unknown) => (typeof value === 'number' ? String(value) : JSON.stringify(value));

function refuses(reader: (raw: RawValue) => unknown, raw: RawValue, reason: RegExp): void {
  assert.throws(
    () => reader(raw),
    (failure) => failure instanceof SettingProblem && reason.test(failure.message),
  );
}

/** What the reader gives, checked like a setting. */
const ruled = (reader: Reader<number>, min: number, max: number) => (raw: RawValue) => {
  const value = reader(raw);
  const problem = wholeNumber(min, max)(value);
  if (problem !== undefined) throw new SettingProblem(problem);
  return value;
};

test('accepts a whole number at both bounds, as a number or as a string', () => {
  for (const raw of [3, '3', 60, '60', '007', '000000000000060', 7.0]) {
    assert.equal(ruled(integer, 3, 60)(raw), Number(raw));
  }
});

for (const raw of [
  2,
  '2',
  61,
  '61',
  -3,
  '-3',
  '+3',
  3.5,
  '3.5',
  '3.0',
  '1e1',
  '0x1F',
  ' 3',
  '3 ',
  '3x',
  'x3',
  'three',
  '1_0',
  '0000000000000060',
  '٣',
  NaN,
  Infinity,
  true,
  ['3'],
  [3],
]) {
  test(`refuses ${show(raw)} as a whole number from 3 to 60 [C8]`, () =>
    refuses(ruled(integer, 3, 60), raw, /^must be a whole number from 3 to 60$/));
}

test('refuses an empty string as a whole number from 0', () =>
  refuses(ruled(integer, 0, 60), '', /whole number/));

for (const raw of [true, 'true', 'TRUE', 'True', 'tRuE']) {
  test(`reads ${show(raw)} as true`, () => assert.equal(boolean(raw), true));
}

for (const raw of [false, 'false', 'FALSE', 'False', 'fAlSe']) {
  test(`reads ${show(raw)} as false`, () => assert.equal(boolean(raw), false));
}

for (const raw of [
  'yes',
  'no',
  'on',
  'off',
  '1',
  '0',
  1,
  0,
  ' true',
  'true ',
  'truee',
  'not false',
  [true],
  ['true'],
  ['false'],
  [],
]) {
  test(`refuses ${show(raw)} as a boolean`, () => refuses(boolean, raw, /^must be .*true.*false/i));
}

test('gives a word the case of its kind', () => {
  for (const raw of ['ALLOWED', 'allowed', 'aLLowed']) assert.equal(inUpperCase(raw), 'ALLOWED');
  assert.equal(inLowerCase('AT+JWT'), 'at+jwt');
  // Whatever the language of the machine is.
  assert.equal(inLowerCase('INFO'), 'info');
  assert.deepEqual([inLowerCase(' A '), inUpperCase(' a ')], [' a ', ' A ']);
  // No rule accepts empty text.
  for (const raw of [1, true, ['any']]) assert.deepEqual([inLowerCase(raw), inUpperCase(raw)], ['', '']);
});

test('returns text unchanged', () => assert.equal(text(' any text '), ' any text '));

for (const raw of [8080, 1.5, NaN, true, false, ['text'], []]) {
  test(`refuses ${show(raw)} where text is wanted and says to quote it`, () =>
    refuses(text, raw, /^must be text; quote it$/));
}

function words(raw: RawValue) {
  const members = list()(raw);
  const problem = listOf(textWithoutBlanks, 0)(members);
  if (problem !== undefined) throw new SettingProblem(problem);
  return members;
}

const LISTS: readonly (readonly [RawValue, readonly string[]])[] = [
  ['a', ['a']],
  ['a,b', ['a', 'b']],
  [' a , b ', ['a', 'b']],
  [
    ['a', 'b'],
    ['a', 'b'],
  ],
  [[], []],
  [['a,b'], ['a,b']],
  ['a;b', ['a;b']],
];

for (const [raw, value] of LISTS) {
  test(`reads ${show(raw)} as the list ${show(value)}`, () => assert.deepEqual(words(raw), value));
}

for (const raw of [1, true, NaN, null, [1], ['a', true], [null], ['a', null]]) {
  test(`refuses ${show(raw)} as a list of strings, and says to quote any other value`, () =>
    refuses(words, raw, /^must be a list of 0 or more strings, .*; quote any other value$/));
}

for (const raw of ['a b', 'a,b c', ['a', 'b c'], [' a']]) {
  test(`refuses ${show(raw)} as a list, since a member has white space`, () =>
    refuses(words, raw, /white space/));
}

test('reads the word any in its own case, alone, and no empty list', () => {
  assert.deepEqual([anyOrList('any'), anyOrList(['any'])], ['any', 'any']);
  assert.deepEqual([anyOrList('ANY'), anyOrList('any, ::1')], [['ANY'], ['any', '::1']]);
  refuses(anyOrList, [], /^must be a list of 1 or more strings, /);
});

test('takes an empty list for none where an option may not be empty', () => {
  assert.equal(listOrNone([]), undefined);
  assert.deepEqual(listOrNone('a,b'), ['a', 'b']);
});

test('refuses an empty member of a list', () => {
  refuses(words, ['a', ''], /^is empty, or has white space or a NUL; remove it$/);
});

for (const raw of [',', ' , ', ',,', ',a', 'a,', 'a,,b', 'a, ']) {
  test(`refuses ${show(raw)}, a list with a hole [H2]`, () => refuses(words, raw, /^is empty/));
}
