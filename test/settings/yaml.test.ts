/* The YAML parser: what it accepts has the meaning of YAML 1.2 (docs/settings.md). */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { catching } from '../../src/verify/base/encoding.ts';
import type { RawValue } from '../../src/settings/entry.ts';
import { parseYaml } from '../../src/settings/yaml.ts';
import { processorMillis } from '../support/processor-time.ts';

const BLANKS = ' '.repeat(60_000);

const text = (source: string) => JSON.stringify(source);

const values = (source: string) => parseYaml(source, 'x.yml').map(({ name, value }) => [name, value]);

/** What follows `a:` on its line → the value. */
const SCALARS: readonly (readonly [clause: string, source: string, value: RawValue])[] = [
  ...['', ' ', ' ~', ' null', ' Null', ' NULL', ' # none', '  #'].map(
    (source) => ['§10.3.2', source, null] as const,
  ),
  ...[' nULL', ' nulL', ' ~~', ' nullx', ' xnull', ' x~'].map(
    (source) => ['§10.3.2', source, source.trim()] as const,
  ),
  ...[' true', ' True', ' TRUE'].map((source) => ['§10.3.2', source, true] as const),
  ...[' false', ' False', ' FALSE'].map((source) => ['§10.3.2', source, false] as const),
  ...[
    ' tRUE',
    ' fALSE',
    ' yes',
    ' no',
    ' on',
    ' off',
    ' y',
    ' N',
    ' truex',
    ' xtrue',
    ' falsey',
    ' xfalse',
  ].map((source) => ['§10.3.2', source, source.trim()] as const),
  ['§10.3.2', ' 0', 0],
  ['§10.3.2', ' 8080', 8080],
  ['§10.3.2', ' -19', -19],
  ['§10.3.2', ' +3', 3],
  ['§10.3.2', ' 007', 7],
  ['§10.3.2', ' 0o17', 15],
  ['§10.3.2', ' 0x1F', 31],
  ['§10.3.2', ' 0xaF09', 44809],
  ['§10.3.2', ' 0o07', 7],
  ['§10.3.2', ' 9081726354', 9081726354],
  ['§10.3.2', ' 0x90fA', 37114],
  ['§10.3.2', ' -90.09e90', -90.09e90],
  ['§10.3.2', ' .90e09', 9e8],
  ['§10.3.2', ' 90.e-9', 90e-9],
  ['§10.3.2', ' 1.5', 1.5],
  ['§10.3.2', ' -.5', -0.5],
  ['§10.3.2', ' +.5', 0.5],
  ['§10.3.2', ' 1.', 1],
  ['§10.3.2', ' 12.25e-2', 0.1225],
  ['§10.3.2', ' 1e3', 1000],
  ['§10.3.2', ' 1E+3', 1000],
  ['§10.3.2', ' 1.e3', 1000],
  ['§10.3.2', ' .5e10', 5e9],
  ['§10.3.2', ' -1.5', -1.5],
  ...[
    ' .',
    ' ..',
    ' +',
    ' 1.2.3',
    ' 0o8',
    ' 0O17',
    ' 0xg',
    ' 0X1F',
    ' -0x1F',
    ' +0o17',
    ' 0o',
    ' 0x',
    ' 1_000',
    ' 1e',
    ' e3',
    ' 1e3x',
    ' x1',
    ' 1x',
    ' 12:30',
    ' 0b1',
    ' .inF',
    ' x.inf',
    ' .infx',
    ' .nAN',
    ' -.nan',
    ' x.nan',
    ' .nanx',
    ' x0o7',
    ' 0o7x',
    ' x0x7',
    ' 0x7x',
    ' 2001-01-01',
    ' 1,5',
  ].map((source) => ['§10.3.2', source, source.trim()] as const),
  ['§7.3.3', ' two words', 'two words'],
  ['§7.3.3', '   padded   ', 'padded'],
  ['§7.3.3', ' a  b', 'a  b'],
  ['§7.3.3', ' https://idp.test:8443/a?b=c', 'https://idp.test:8443/a?b=c'],
  ['§7.3.3', ' a:b', 'a:b'],
  ['§7.3.3', ' :a', ':a'],
  ['§7.3.3', ' -a', '-a'],
  ['§7.3.3', ' ?a', '?a'],
  ['§7.3.3', ' --', '--'],
  ['§7.3.3', ' ---', '---'],
  ['§7.3.3', ' a, [b], {c}', 'a, [b], {c}'],
  ['§7.3.3', ' a"b"', 'a"b"'],
  ['§7.3.3', " it's", "it's"],
  ['§7.3.3', ' a\\n', 'a\\n'],
  ['§7.3.3', ' a&b*c!d|e>f%g@h`', 'a&b*c!d|e>f%g@h`'],
  ['§7.3.3', ' \u00a0é😀\u3000', '\u00a0é😀\u3000'],
  ['§7.3.3', ' <<', '<<'],
  ['§7.3.3', ' =', '='],
  ['§6.6', ' a#b', 'a#b'],
  ['§6.6', ' a# b', 'a# b'],
  ['§6.6', ' a #b', 'a'],
  ['§6.6', ' a   # b: c', 'a'],
  ['§6.6', ' 7 # seven', 7],
  ['§6.6', ' ~ # x', null],
  ['§7.3.2', " 'a'", 'a'],
  ['§7.3.2', " ''", ''],
  ['§7.3.2', " 'it''s'", "it's"],
  ['§7.3.2', " ''''", "'"],
  ['§7.3.2', " 'a''b''c'", "a'b'c"],
  ['§7.3.2', " '1'", '1'],
  ['§7.3.2', " 'true'", 'true'],
  ['§7.3.2', " '~'", '~'],
  ['§7.3.2', " 'a # b: c'", 'a # b: c'],
  ['§7.3.2', " ' a '", ' a '],
  ['§7.3.2', " 'a\\n\"'", 'a\\n"'],
  ['§7.3.2', " 'a'   # b", 'a'],
  ['§7.3.2', " 'a'  ", 'a'],
  ['§7.3.1', ' "a"', 'a'],
  ['§7.3.1', ' ""', ''],
  ['§7.3.1', ' "1"', '1'],
  ['§7.3.1', ' "a # b: c"', 'a # b: c'],
  ['§7.3.1', ' "it\'\'s"', "it''s"],
  ['§7.3.1', ' "a" # b', 'a'],
  ['§5.7', ' "\\""', '"'],
  ['§5.7', ' "\\\\"', '\\'],
  ['§5.7', ' "\\/"', '/'],
  ['§5.7', ' "\\n\\r\\t\\b\\f"', '\n\r\t\b\f'],
  ['§5.7', ' "\\u0041\\u20aC\\u9F00\\ufA0a"', 'A€\u9f00\ufa0a'],
  ['§5.7', ' "\\\\n"', '\\n'],
  ['§5.7', ' "\\u00411\\u0000"', 'A1\0'],
  ['§5.7', ' "\\ud7ff\\ue000"', '\ud7ff\ue000'],
  ['§7.4.1', ' []', []],
  ['§7.4.1', ' [ ]', []],
  ['§7.4.1', ' [a]', ['a']],
  ['§7.4.1', ' [a, b]', ['a', 'b']],
  ['§7.4.1', ' [ a ,b , ]', ['a', 'b']],
  ['§7.4.1', ' [1, "1", true, \'true\', ~, 0x1F]', [1, '1', true, 'true', null, 31]],
  ['§7.4.1', ' ["a, b", \'c]\']', ['a, b', 'c]']],
  ['§7.4.1', ' ["", \'\']', ['', '']],
  ['§7.4.1', ' [https://a.test:1/x, b:c]', ['https://a.test:1/x', 'b:c']],
  ['§7.4.1', ' [a#b]', ['a#b']],
  ['§7.4.1', ' [a"b, c\'d]', ['a"b', "c'd"]],
  ['§7.4.1', ' [a b, -1]', ['a b', -1]],
  ['§7.4.1', ' [a] # b', ['a']],
  ['§7.4.1', ' [a]  ', ['a']],
];

for (const [clause, source, value] of SCALARS) {
  test(`reads "a:" with ${text(source)} as ${Array.isArray(value) ? JSON.stringify(value) : String(value)} [YAML 1.2.2 ${clause}]`, () => {
    assert.deepEqual(parseYaml(`a:${source}\nb: 2`, 'x.yml'), [
      { name: 'a', value, source: 'x.yml, line 1' },
      { name: 'b', value: 2, source: 'x.yml, line 2' },
    ]);
  });
}

/** A document → its paths and values. */
const DOCUMENTS: readonly (readonly [
  what: string,
  source: string,
  ...entries: readonly [string, RawValue][],
])[] = [
  ['an empty document', ''],
  ['blank lines and comments', '\n   \n# a: 1\n  # b: 2\n#\n'],
  ['a document of one marker', '---\n'],
  ['a document of one marker, without the end of a line', '---'],
  ['a byte-order mark', '\uFEFFa: 1', ['a', 1]],
  ['a byte-order mark before a marker', '\uFEFF---\na: 1', ['a', 1]],
  ['a byte-order mark before a comment', '\uFEFF# x\na: 1', ['a', 1]],
  ['a marker', '---\na: 1', ['a', 1]],
  ['a marker after comments', '# x\n\n---\na: 1', ['a', 1]],
  ['a marker after indented comments and blanks', '  # x\n  \n---\na: 1', ['a', 1]],
  ['a marker after lines with ends of two characters', '\r\n# x\r\n---\r\na: 1', ['a', 1]],
  ['a marker with blanks', '---  \na: 1', ['a', 1]],
  ['a marker with a comment', '--- # x\na: 1', ['a', 1]],
  ['keys that begin as markers do', '---a: 1\n...b: 2', ['---a', 1], ['"...b"', 2]],
  ['keys that differ in case alone', 'a: 1\nA: 2', ['a', 1], ['A', 2]],
  ['line ends of two characters', 'a: 1\r\nb:\r\n  - x\r\n  - "y"\r\n', ['a', 1], ['b', ['x', 'y']]],
  ['nested maps', 'a:\n  b:\n    c: 1\n  d: 2\ne: 3', ['a.b.c', 1], ['a.d', 2], ['e', 3]],
  ['two levels that end at once', 'a:\n  b:\n     c: 1\nd: 2', ['a.b.c', 1], ['d', 2]],
  [
    'maps of any depth of indentation',
    'a:\n b: 1\nc:\n      d: 2\n      e: 3',
    ['a.b', 1],
    ['c.d', 2],
    ['c.e', 3],
  ],
  ['an indented document', '  a:\n   b: 1\n  c: 2', ['a.b', 1], ['c', 2]],
  [
    'comments and blank lines between',
    'a: # x\n# y\n\n      # z\n  b: 1\n\n  # w\n  c: 2',
    ['a.b', 1],
    ['a.c', 2],
  ],
  ['the same key in different maps', 'a:\n  x: 1\nb:\n  x: 2\nx: 3', ['a.x', 1], ['b.x', 2], ['x', 3]],
  [
    'a key without a value',
    'a:\nb: 1\nc:\n  d:\n  e: 2\nf:',
    ['a', null],
    ['b', 1],
    ['c.d', null],
    ['c.e', 2],
    ['f', null],
  ],
  ['a block list', 'a:\n  - x\n  - 1\n  - "1"\nb: 2', ['a', ['x', 1, '1']], ['b', 2]],
  ['a block list at the indentation of its key', 'a:\n- x\n- y\nb: 2', ['a', ['x', 'y']], ['b', 2]],
  [
    'a block list at the indentation of its key in a nested map',
    'a:\n  b:\n  - x\n  c: 1',
    ['a.b', ['x']],
    ['a.c', 1],
  ],
  [
    'a block list with comments between',
    'a: # one\n  # two\n  - x # three\n\n# four\n  -   y\n',
    ['a', ['x', 'y']],
  ],
  ['list items without a value', 'a:\n  -\n  - # x\n  - ~\n', ['a', [null, null, null]]],
  ['a value and a key with a dash inside', 'a:\n  b: x - y\n  c -: z\n', ['a.b', 'x - y'], ['a.c -', 'z']],
  ['list items that begin as items do', 'a:\n  - -1\n  - --\n  - -x', ['a', [-1, '--', '-x']]],
  [
    'quoted keys',
    '"a": 1\n\'b\' : 2\n"c d": 3\n"1": 4\n\'it\'\'s\': 5\n"\\u0041#:": 6\n"f":',
    ['a', 1],
    ['b', 2],
    ['c d', 3],
    ['1', 4],
    ["it's", 5],
    ['A#:', 6],
    ['f', null],
  ],
  [
    'plain keys',
    'a b: 1\na:b: 2\na#b : 3\n-a: 4\n?b: 5\n:c: 6\nd"e: 7\nyes: 8\n__proto__: 9',
    ['a b', 1],
    ['a:b', 2],
    ['a#b', 3],
    ['-a', 4],
    ['?b', 5],
    [':c', 6],
    ['d"e', 7],
    ['yes', 8],
    ['__proto__', 9],
  ],
  [
    'keys with a dot, which does not separate levels',
    '"a.b": 1\na.b.c: 2\na:\n  b: 3\n  c.d:\n    e: 4\n\'"a.b"\': 5\n\'"a\':\n  b": 6',
    ['"a.b"', 1],
    ['"a.b.c"', 2],
    ['a.b', 3],
    ['a."c.d".e', 4],
    ['"\\"a.b\\""', 5],
    ['"\\"a".b"', 6],
  ],
  ['a key of 1000 characters', `${'k'.repeat(1000)}: 1`, ['k'.repeat(1000), 1]],
];

for (const [what, source, ...entries] of DOCUMENTS) {
  test(`reads ${what} [YAML 1.2.2 §8, §9]`, () => assert.deepEqual(values(source), entries));
}

test('gives every value the line of its key, even lists and the values after them', () => {
  const source = '# x\na:\n\n  b:\n  - x\n  # y\n  - z\n  c: [1]\n\n---x: 1';
  const lines = parseYaml(source, 'x.yml').map(({ name, source }) => `${name} ${source}`);
  assert.deepEqual(lines, ['a.b x.yml, line 4', 'a.c x.yml, line 8', '---x x.yml, line 10']);
});

test('allows the printable characters that border on refused ones [YAML 1.2.2 §5.1]', () => {
  const printable = ' !~\u00a0\u00a1\u2027\u202a\ud7ff\ue000\ufefe\uff00\ufffd\u{10000}\u{10ffff}';
  assert.deepEqual(values(`a: x${printable}x`), [['a', `x${printable}x`]]);
});

/** Lines that could make a pattern backtrack. */
const LONG: Readonly<Record<string, string>> = {
  'a key, blanks and no colon': `a${BLANKS}b`,
  'blanks before a quoted scalar that is not closed': `a:${BLANKS}"x`,
  'blanks inside a plain scalar': `a: x${BLANKS}y`,
  'blanks in the item of a list': `a: [b${BLANKS}c`,
  'blanks in a list that is not closed': `a: [${BLANKS}{`,
};

for (const [what, line] of Object.entries(LONG)) {
  test(`reads a very long line of ${what} in less than a second [C10]`, () => {
    const millis = processorMillis(() => catching('SettingProblem', () => parseYaml(line, 'x.yml')));
    assert.ok(millis < 1_000, `${millis} ms`);
  });
}

test('gives each key only the items of its own list, indented or not [§8.2.1]', () => {
  assert.deepEqual(values('a:\n  - 1\n  - 2\nb:\n  - 3\nc:\n- 4'), [
    ['a', [1, 2]],
    ['b', [3]],
    ['c', [4]],
  ]);
});
