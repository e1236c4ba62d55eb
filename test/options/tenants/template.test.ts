/* Which texts name a tenant: 100,000 of them, judged as by an independent reading; and which templates share one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Template, TEMPLATE_RULES } from '../../../src/options/tenants/template.ts';

const TEXT = 'https://login.test/{tenant}/v2.0';

const EVERYONE = ['*'];

test('fills the tenant in, and finds it again', () => {
  const template = new Template(TEXT, ['a', 'Contoso.example', '9188040d-6c67-4c5b-b112-36a304b66dad']);
  for (const tenant of template.listed ?? []) {
    assert.equal(template.fill(tenant), `https://login.test/${tenant}/v2.0`);
    assert.equal(template.tenantIn(template.fill(tenant)), tenant);
  }
});

for (const [what, text] of [
  ['at its end', 'https://login.test/realms/{tenant}'],
  ['before a slash at its end', 'https://login.test/{tenant}/'],
  ['between segments', 'https://login.test/a/{tenant}/b/c'],
] as const) {
  test(`finds a tenant ${what}`, () => {
    const template = new Template(text, EVERYONE);
    assert.equal(template.tenantIn(text.replace('{tenant}', 'x-1')), 'x-1');
    assert.equal(template.tenantIn(`${text.replace('{tenant}', 'x-1')}/`), undefined);
    assert.equal(template.tenantIn(text.replace('{tenant}', '')), undefined);
  });
}

for (const [what, word] of [
  ['is empty', ''],
  ['has a slash', 'a/b'],
  ['has an escaped slash', 'a%2Fb'],
  ['has dots alone', '..'],
  ['begins with a dot', '.a'],
  ['begins with a dash', '-a'],
  ['begins with an underscore', '_a'],
  ['has 65 characters', 'a'.repeat(65)],
  ['ends in a line feed', 'a\n'],
  ['has a line feed', 'a\nb'],
  ['has a NUL', 'a\0'],
  ['has a space', 'a b'],
  ['has letters outside ASCII', 'ä'],
  ['looks like one to the eye', 'а'],
  ['is the place itself', '{tenant}'],
  ['is the place of the provider', '{tenantid}'],
  ['is the star', '*'],
  ['has a query', 'a?b'],
  ['has a fragment', 'a#b'],
  ['has an at sign', 'a@b'],
  ['has a tilde', 'a~b'],
  ['has a semicolon', 'a;b'],
] as const) {
  test(`names no tenant of every one if its word ${what} [§23, J6]`, () => {
    assert.equal(new Template(TEXT, EVERYONE).tenantIn(`https://login.test/${word}/v2.0`), undefined);
  });
}

test('accepts 64 characters, and letters, digits, dots, underscores and dashes', () => {
  for (const word of ['a'.repeat(64), 'A', '0', 'a._-Z9', 'a..b', 'a-']) {
    assert.equal(new Template(TEXT, EVERYONE).tenantIn(`https://login.test/${word}/v2.0`), word);
  }
});

test('names no tenant in a text that overlaps both sides of the template', () => {
  const template = new Template('https://login.test/a/{tenant}/a', EVERYONE);
  for (const text of [
    'https://login.test/a/a',
    'https://login.test/a//a',
    'https://login.test/a/',
    '/a',
    '',
  ]) {
    assert.equal(template.tenantIn(text), undefined);
  }
});

test('names no tenant in what is no text', () => {
  const template = new Template(TEXT, ['a']);
  const text = template.fill('a');
  for (const value of [undefined, null, 7, [text], { text }, new String(text), true]) {
    assert.equal(template.tenantIn(value), undefined);
  }
});

for (const [what, url] of [
  ['in the host', 'https://{tenant}.login.test/keys'],
  ['as the host', 'https://{tenant}/keys'],
  ['as part of a segment', 'https://login.test/a{tenant}/keys'],
  ['before more of a segment', 'https://login.test/{tenant}a/keys'],
  ['in the query', 'https://login.test/keys?{tenant}'],
  ['in the query, behind a slash', 'https://login.test/keys?/{tenant}'],
  ['in a URL within the query', 'https://login.test/keys?u=https://login.test/{tenant}'],
  ['in the fragment', 'https://login.test/keys#/{tenant}'],
  ['twice', 'https://login.test/{tenant}/{tenant}'],
] as const) {
  test(`is no template with its slot ${what} [§23]`, () => {
    assert.notEqual(TEMPLATE_RULES.addressOrTemplate(url), undefined);
    assert.notEqual(TEMPLATE_RULES.issuerOrTemplate(url), undefined);
  });
}

test('is a template with its slot as a segment of the path, before a query too [§23]', () => {
  const alone = 'https://login.test/{tenant}';
  for (const url of [TEXT, alone, `${alone}/keys?v=2`, `${alone}?v=2`]) {
    assert.equal(TEMPLATE_RULES.addressOrTemplate(url), undefined);
  }
});

/** Mulberry32: the same numbers in each run. */
function createRandom(seed: number) {
  let state = seed;

  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };

  const below = (end: number) => Math.floor(next() * end);
  return { below, oneOf: <Value>(values: readonly Value[]) => values[below(values.length)]! };
}

const COUNT = 100_000;

const PIECES = [
  ...[
    '',
    '/',
    '//',
    '.',
    '..',
    '%2f',
    '%2F',
    '?',
    '#',
    '@',
    '\\',
    '{tenant}',
    '{tenantid}',
    '*',
    ' ',
    '\n',
    '\t',
  ],
  ...[
    '\0',
    'ä',
    'K',
    'v2.0',
    'V2.0',
    'a',
    'A',
    'b',
    'ab',
    'a.b',
    'a-b',
    '_',
    '-',
    '0',
    'a'.repeat(64),
    'https:',
  ],
  ...[
    'https://login.test',
    'https://login.test/',
    'HTTPS://login.test/',
    'http://login.test/',
    '$&',
    '$1',
    '$`',
  ],
];

const TEMPLATES = [
  TEXT,
  'https://login.test/realms/{tenant}',
  'https://login.test/{tenant}/',
  'https://a/a/{tenant}/a',
];

const LISTS: readonly (readonly string[])[] = [
  EVERYONE,
  ['a'],
  ['a', 'A', 'ab', 'a.b'],
  ['b', 'v2.0', '0', 'a'.repeat(64)],
];

const isLetterOrDigit = (code: number) =>
  (code >= 48 && code <= 57) || (code >= 65 && code <= 90) || (code >= 97 && code <= 122);

/** Read one character at a time, without a pattern. */
function isWord(word: string) {
  if (word.length < 1 || word.length > 64) return false;

  const codes = Array.from({ length: word.length }, (_, index) => word.charCodeAt(index));
  return codes.every((code, index) => isLetterOrDigit(code) || (index > 0 && [45, 46, 95].includes(code)));
}

/** By segments, in place of text on both sides. */
function readTenant(text: string, template: string, list: readonly string[]) {
  const segments = text.split('/');
  const wanted = template.split('/');
  const place = wanted.indexOf('{tenant}');
  const others = segments.toSpliced(place, 1).join('/') === wanted.toSpliced(place, 1).join('/');
  const word = segments[place];
  if (segments.length !== wanted.length || !others || word === undefined) return undefined;

  return (list === EVERYONE ? isWord(word) : list.includes(word)) ? word : undefined;
}

test(`reads ${COUNT} texts as an independent reader does, and accepts none by mistake [§23, J6]`, () => {
  const { below, oneOf } = createRandom(20_261_127);
  const makeOne = () => Array.from({ length: 1 + below(3) }, () => oneOf(PIECES)).join('');

  let accepted = 0;
  for (let count = 0; count < COUNT; count += 1) {
    const template = oneOf(TEMPLATES);
    const list = oneOf(LISTS);
    const whole = below(4) === 0 ? makeOne() : template.split('{tenant}').join(makeOne());
    const text = below(8) === 0 ? whole.slice(0, below(whole.length + 1)) + makeOne() : whole;

    const tenant = new Template(template, list).tenantIn(text);
    assert.equal(tenant, readTenant(text, template, list), JSON.stringify([text, template, list]));
    if (tenant === undefined) continue;

    accepted += 1;
    assert.equal(template.split('{tenant}').join(tenant), text);
  }
  assert.ok(accepted > 1_000, `${accepted} accepted`);
});

type Texts = readonly [template: string, list?: readonly string[]];

const overlap = ([one, ofOne = []]: Texts, [other, ofOther]: Texts) => {
  const template = ofOther && new Template(other, ofOther);
  return new Template(one, ofOne).overlaps({ name: 'other', issuer: other, template });
};

test('overlaps a fixed issuer that its list yields, but none beside *, where that issuer wins [§23]', () => {
  assert.equal(overlap([TEXT, ['a', 'b']], ['https://login.test/b/v2.0']), true);
  assert.equal(overlap([TEXT, ['a', 'b']], ['https://login.test/c/v2.0']), false);
  assert.equal(overlap([TEXT, EVERYONE], ['https://login.test/b/v2.0']), false);
});

for (const [what, one, other, isSame] of [
  ['lists without a common issuer', [TEXT, ['a']], ['https://login.test/a/{tenant}', ['b']], false],
  ['lists with one', [TEXT, ['a']], ['https://login.test/a/{tenant}', ['v2.0']], true],
  ['a list and *', [TEXT, ['a']], ['https://login.test/a/{tenant}', EVERYONE], true],
  ['a list and * elsewhere', [TEXT, ['a']], ['https://login.test/b/{tenant}', EVERYONE], false],
  ['two *', [TEXT, EVERYONE], ['https://login.test/a/{tenant}', EVERYONE], true],
  ['two * of hosts', [TEXT, EVERYONE], ['https://login2.test/{tenant}/v2.0', EVERYONE], false],
  ['two * of lengths', [TEXT, EVERYONE], ['https://login.test/{tenant}', EVERYONE], false],
  ['two * with a word that is none', [TEXT, EVERYONE], ['https://login.test/_a/{tenant}', EVERYONE], false],
] as const) {
  test(`tells whether templates yield one issuer: ${what} [§23]`, () => {
    assert.equal(overlap(one, other), isSame);
    assert.equal(overlap(other, one), isSame);
  });
}
