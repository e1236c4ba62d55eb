import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import {
  decodeBase64url,
  decodeUtf8,
  isFiniteNumber,
  isJsonObject,
  isTextArray,
  parseJsonObject,
  catching,
  withoutPrototype,
} from '../../../src/verify/base/encoding.ts';
import { BASE64URL_MISSPELLINGS } from '../../support/spellings.ts';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

test('decodes what Node encodes as base64url, whatever its length [RFC 4648 §5]', () => {
  for (let length = 0; length < 70; length += 1) {
    const bytes = randomBytes(length);
    assert.deepEqual(decodeBase64url(bytes.toString('base64url')), bytes);
  }
});

test('decodes every letter of the alphabet by its value [RFC 4648 §5]', () => {
  for (const [value, letter] of [...ALPHABET].entries()) {
    assert.deepEqual(decodeBase64url(`A${letter}AA`), Buffer.from([value >> 4, value << 4, 0]));
  }
});

test('accepts only one spelling of each byte when spare bits could be set [RFC 4648 §3.5]', () => {
  const spellings = [...ALPHABET].flatMap((first) => [...ALPHABET].map((second) => first + second));
  const accepted = spellings.flatMap((text) => decodeBase64url(text)?.[0] ?? []);
  assert.deepEqual(
    accepted.sort((one, other) => one - other),
    [...Array(256).keys()],
  );
});

test('accepts only one spelling of two bytes when spare bits could be set [RFC 4648 §3.5]', () => {
  assert.deepEqual(
    [...ALPHABET].filter((letter) => decodeBase64url(`AA${letter}`) !== undefined).join(''),
    'AEIMQUYcgkosw048',
  );
});

for (const text of ['A', 'AAAAA', '=', 'AA.AA']) {
  test(`refuses base64url that is "${text}" [RFC 7515 §2]`, () =>
    assert.equal(decodeBase64url(text), undefined));
}

for (const [what, misspell] of BASE64URL_MISSPELLINGS) {
  test(`refuses base64url that has ${what} [RFC 7515 §2]`, () => {
    assert.equal(decodeBase64url('AAAAAAAAAA')?.length, 7);
    assert.equal(decodeBase64url(misspell('AAAAAAAAAA')), undefined);
  });
}

test('decodes UTF-8 of every length of character [RFC 3629 §3]', () => {
  const text = 'a\u00e9\u4e2d\u{1f600}\0\ufffd';
  assert.equal(decodeUtf8(Buffer.from(text)), text);
});

test('keeps a byte-order mark when it decodes UTF-8 [RFC 3629 §6]', () => {
  assert.equal(decodeUtf8(Buffer.from('\ufeffa')), '\ufeffa');
});

const notUtf8: readonly [string, number[]][] = [
  ['the byte FF', [0xff]],
  ['an overlong NUL', [0xc0, 0x80]],
  ['an overlong slash', [0xe0, 0x80, 0xaf]],
  ['a surrogate', [0xed, 0xa0, 0x80]],
  ['a lone continuation', [0x80]],
  ['a truncated character', [0xe4, 0xb8]],
  ['a character beyond U+10FFFF', [0xf4, 0x90, 0x80, 0x80]],
  ['Latin-1', [0x61, 0xe9, 0x61]],
];

for (const [what, bytes] of notUtf8) {
  test(`refuses UTF-8 that has ${what} [RFC 3629 §3, C4]`, () =>
    assert.equal(decodeUtf8(Buffer.from(bytes)), undefined));
}

const parse = (text: string) => parseJsonObject(Buffer.from(text));

test('copies an object without its inherited members [C7]', () => {
  const object = withoutPrototype({ own: 1 });
  assert.equal(object?.own, 1);
  for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
    assert.equal(object?.[name], undefined);
  }
  const inherited = Object.getPrototypeOf(object);
  assert.deepEqual(
    [Reflect.ownKeys(inherited), Object.isFrozen(inherited), Object.getPrototypeOf(inherited)],
    [[], true, null],
  );
});

for (const value of [null, undefined, [], [{}], 'text', 0, 1, true, false]) {
  test(`does not accept ${JSON.stringify(value)} as a JSON object`, () =>
    assert.equal(isJsonObject(value), false));
}

test('parses a JSON object with blanks around it [RFC 8259 §2]', () => {
  assert.deepEqual({ ...parse(' \t\r\n{ "a" : [1, {"b": null}] }\n') }, { a: [1, { b: null }] });
});

test('parses an empty JSON object', () =>
  assert.deepEqual(Object.keys(parse('{}') ?? { missing: true }), []));

test('uses the last of repeated members, however it is spelled [RFC 7519 §4]', () => {
  assert.equal(parse('{"aud":1,"aud":2}')?.aud, 2);
  assert.equal(parse('{"aud":1,"\\u0061ud":2}')?.aud, 2);
  assert.equal(parse('{"\\u0061ud":2,"aud":1}')?.aud, 1);
});

test('keeps __proto__ as a member, and changes no prototype', () => {
  for (const blanks of ['', ' '.repeat(5_000)]) {
    const object = parse(`{"__proto__":{"scope":"admin"}}${blanks}`);
    assert.deepEqual(Object.keys(object ?? {}), ['__proto__']);
    assert.equal(object?.scope, undefined);
  }
  assert.equal(({} as Record<string, unknown>).scope, undefined);
});

test('parses a deeply nested object', () => {
  assert.ok(parse(`{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`));
});

const notObjects: readonly string[] = [
  '',
  ' ',
  'null',
  '[]',
  '[{}]',
  '"{}"',
  '1',
  'true',
  '{',
  '}',
  '{}{}',
  '{} x',
  'x{}',
  '{},',
  '\ufeff{}',
  '{}\0',
  "{'a':1}",
  '{a:1}',
  '{"a":1,}',
  '{"a":NaN}',
  '{"a":01}',
  '{"a":+1}',
  '{"a":undefined}',
  '{"a":"\n"}',
  '{/**/}',
];

for (const text of notObjects) {
  test(`refuses ${JSON.stringify(text)} as a JSON object [RFC 8259 §4]`, () =>
    assert.equal(parse(text), undefined));
}

test('refuses a JSON object that is not in UTF-8 [RFC 8259 §8.1, C4]', () => {
  assert.equal(parseJsonObject(Buffer.from('{"a":"\xff"}', 'latin1')), undefined);
  assert.equal(parseJsonObject(Buffer.from('{"a":1}', 'utf16le')), undefined);
});

test('accepts only texts in a list of texts, and no hole', () => {
  for (const value of [['a', 1], [undefined], new Array(1), 'a', undefined]) {
    assert.equal(isTextArray(value), false);
  }
  assert.deepEqual([isTextArray([]), isTextArray(['a', ''])], [true, true]);
});

test('accepts only finite numbers as numbers', () => {
  for (const value of [0, -0, -1, 0.5, 1e308, 2 ** 53 + 2]) {
    assert.equal(isFiniteNumber(value), true, String(value));
  }
  for (const value of [
    Infinity,
    -Infinity,
    NaN,
    '1',
    '',
    null,
    undefined,
    true,
    [],
    [1],
    {},
    1n,
    Object(1),
  ]) {
    assert.equal(isFiniteNumber(value), false, String(value));
  }
});

test('returns undefined for an error of the expected name, and rethrows every other error', () => {
  const fail = (failure: unknown) => (): never => {
    throw failure;
  };

  assert.equal(
    catching('SyntaxError', () => 1),
    1,
  );
  assert.equal(catching('SyntaxError', fail(new SyntaxError('x'))), undefined);
  const bug = new TypeError('y');
  assert.throws(() => catching('SyntaxError', fail(bug)), bug);
});
