/* The YAML parser: anything but the YAML that settings need is rejected with its line (docs/settings.md). */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { SettingProblem } from '../../src/settings/entry.ts';
import { parseYaml } from '../../src/settings/yaml.ts';

const text = (source: string) => JSON.stringify(source);

const LONG = 'k'.repeat(1001);
// Loose patterns, since wording may change; the line is promised.
const FORM = /unsupported|list/;
const KEY = /not text; quote|key: value|1000 characters|unsupported/;
const DIRECTIVE = /a directive/;
const UNFINISHED = /not closed on its line/;
const STRAY = /list item/;
const TWICE = /is already set; remove one/;
const PLACE = /indentation|list item/;
const CHARACTER = /character/;

/** What is refused, a document, its line and reason. */
const FAULTS: readonly (readonly [what: string, source: string, line: number, reason: RegExp])[] = [
  ...[
    '&x 1',
    '*x',
    '!x 1',
    '!!str 1',
    '{}',
    '{b: 1}',
    '|',
    '>',
    '|-',
    '>+1',
    '%x',
    '@x',
    '`x',
    ',x',
    ']',
    '}',
    '] # x',
  ].map((value) => [`the value ${text(value)}`, `z: 0\na: ${value}`, 2, FORM] as const),
  ...[
    '- x',
    '-',
    '? x',
    '?',
    ': x',
    ':',
    'b: c',
    'b:',
    'x: # y',
    '.inf',
    '+.Inf',
    '-.INF',
    '.nan',
    '.NaN',
    '.NAN',
  ].map((value) => [`the value ${text(value)}`, `z: 0\na: ${value}`, 2, FORM] as const),
  ...[
    '- x',
    '&x y',
    '*x',
    '!x y',
    '{x: y}',
    '| x',
    '? x',
    'x: y',
    'x:',
    '- - x',
    '%x',
    '@x',
    '`x',
    '> x',
    ']',
    ', x',
  ].map((item) => [`the item ${text(item)}`, `a:\n  - x\n  - ${item}\n`, 3, FORM] as const),
  ...['# x', '&x', '*x', '!x', '- x', '-', '? x', ': x', '%x', '@x', '`x', '| x', '> x', 'x: y', 'x:'].map(
    (item) => [`the flow item ${text(item)}`, `z: 0\na: [y, ${item}]`, 2, FORM] as const,
  ),
  ...['&x a', '*x', '!x a', '? a', '{a}', '[a]', '@a', '`a', '| a', 'a #b', ', a', '} a'].map(
    (key) => [`the key ${text(key)}`, `z: 0\n${key}: 1`, 2, FORM] as const,
  ),
  ['a directive', '%YAML 1.2\n---\na: 1', 1, DIRECTIVE],
  ['a directive after a comment', '# x\n%TAG ! x\n---\na: 1', 2, DIRECTIVE],
  ['a key like a directive', 'z: 0\n%a: 1', 2, DIRECTIVE],
  ['a nested key like a directive', 'z:\n  %a: 1', 2, FORM],
  ...['1', '-1.5', '0x1F', 'true', 'null', '~', '.inf', '.nan', '""', "''"].map(
    (key) => [`the key ${text(key)}`, `z: 0\n${key}: 1`, 2, KEY] as const,
  ),
  ['a key without text', 'z: 0\n: 1', 2, KEY],
  ['a key of 1001 characters', `z: 0\n${LONG}: 1`, 2, KEY],
  ['a quoted key of 1001 characters', `z: 0\n"${LONG.slice(2)}": 1`, 2, KEY],
  ...[
    'a',
    '"a"',
    'a:1',
    '"a":1',
    '"a"b: 1',
    '"a" b: 1',
    '"a" #: 1',
    '{a:1}',
    '[a]',
    'http://x',
    '&x',
    '*x',
    '|',
  ].map((line) => [`the line ${text(line)}`, `z: 0\n${line}\ny: 1`, 2, KEY] as const),
  ...['- a', '-', '- a: 1'].map(
    (line) => [`the list item ${text(line)} for a key`, `z: 0\n${line}`, 2, STRAY] as const,
  ),
  ['a document that is a list', '- a\n- b', 1, STRAY],
  ['a list item under a value', 'a: x\n- y', 2, STRAY],
  ['a list item after a flow list', 'a: [x]\n- y', 2, STRAY],
  ['a list that begins after a map', 'a:\n  b: 1\n  - x', 3, STRAY],
  ['a list less indented than its key', '  a:\n- x', 2, PLACE],
  ['a list item more indented than the first', 'a:\n  - x\n   - y', 3, PLACE],
  ['a list item less indented than the first', 'a:\n  - x\n - y', 3, PLACE],
  ['a key as far right as the dashes end', 'a:\n - x\n  b: 1', 3, PLACE],
  ['a list whose dashes end where a map begins', 'a:\n b: 1\n- x', 3, PLACE],
  ['a key under a list', 'a:\n  - x\n  b: 1', 3, PLACE],
  ['a key that is more indented than its map', 'a: 1\n  b: 2', 2, PLACE],
  ['a key between two maps', 'a:\n    b: 1\n  c: 2', 3, PLACE],
  ['a key left of the document', '  a: 1\n b: 2', 2, PLACE],
  ['a plain scalar of several lines', 'a: x\n  y\nb: 1', 2, PLACE],
  ['a plain scalar that begins on the next line', 'a:\n  x\nb: 1', 2, /missing "key: value"/],
  ['a list item of several lines', 'a:\n  - x\n    y', 3, PLACE],
  ['a list in a list', 'a:\n  - x\n  - [y]', 3, FORM],
  ['a flow list in a flow list', 'z: 0\na: [[b]]', 2, FORM],
  ['a flow map in a flow list', 'z: 0\na: [{b: c}]', 2, FORM],
  ...["'x", '"x', "'it''s", "'x''", '"x\\"', '"', "'"].map(
    (value) => [`the unclosed ${value}`, `z: 0\na: ${value}\nb: 1`, 2, UNFINISHED] as const,
  ),
  ['a quoted scalar of several lines', 'a: "x\n  y"', 1, UNFINISHED],
  ['a quoted key of several lines', 'z: 0\n"a\n  b": 1', 2, UNFINISHED],
  ['an unclosed quoted key', 'z: 0\n"a: 1', 2, UNFINISHED],
  ['an unclosed quoted item', 'z: 0\na: ["b]', 2, UNFINISHED],
  ...[
    '"x"y',
    '"x" y',
    '"x"#y',
    "'x' 'y'",
    '"x": y',
    '"x" "y"',
    '""x',
    '[x] y',
    '[x]#y',
    '[x]]',
    '[x]: y',
    '[]x',
    '[] []',
  ].map(
    (value) =>
      [`something after ${text(value)}`, `z: 0\na: ${value}`, 2, /something after the value/] as const,
  ),
  ...[
    '[',
    '[x',
    '[x,',
    '[x, ',
    '[,]',
    '[,x]',
    '[x,,y]',
    '[x #y]',
    '[x #]',
    '[x{y]',
    '[x}y]',
    '["x" y]',
    '["x":y]',
    '["x": y]',
    '["x"y]',
    '[ , ]',
    '[x[y]]',
    '[x #y, z]',
    "['x]",
    "['x y]",
  ].map((value) => [`the flow list ${text(value)}`, `z: 0\na: ${value}`, 2, FORM] as const),
  ['a flow list of several lines', 'a: [x,\n  y]', 1, FORM],
  ['a flow list that ends on the next line', 'a: [x\n  ]', 1, FORM],
  ...[
    '\\q',
    '\\x4',
    '\\xg1',
    '\\u004',
    '\\ug041',
    '\\ud83d',
    '\\ud83d\\ude00',
    '\\ud800',
    '\\udfff',
    '\\x',
    '\\1',
    "\\'",
    '\\#',
    '\\0',
    '\\x41',
    '\\U0001F600',
    '\\a',
    '\\v',
    '\\e',
    '\\N',
    '\\_',
    '\\L',
    '\\P',
    '\\t\\ ',
    '\\uD83D',
    '\\uDFFF',
    '\\-',
  ].map((escape) => [`the escape ${escape}`, `z: 0\na: "${escape}"`, 2, /escape/] as const),
  ['a key that is there twice', 'a: 1\nb: 2\na: 3', 3, TWICE],
  ['a key that is there twice, quoted', 'a: 1\n"a": 1', 2, TWICE],
  ['a nested key that is there twice', 'a:\n  b: 1\n  c: 2\n  b: 3', 4, TWICE],
  ['a key with capitals that is there twice', 'aB: 1\nc: 2\naB: 3', 3, TWICE],
  ['a map that is there twice', 'a:\n  b: 1\na:\n  c: 2', 3, TWICE],
  ['a key of a list that is there twice', 'a:\n- x\na: 1', 3, TWICE],
  ['a key with a dot that is there twice', 'a.b: 1\n"a.b": 2', 2, TWICE],
  ['a tab that indents', 'a:\n\tb: 1', 2, /tab/],
  ['a tab that separates', 'z: 0\na:\t1', 2, /tab/],
  ['a tab at the end', 'z: 0\na: 1\t', 2, /tab/],
  ['a tab in a scalar', 'z: 0\na: x\ty', 2, /tab/],
  ['a tab on a blank line', 'z: 0\n\t\na: 1', 2, /tab/],
  ['a tab in a comment', 'z: 0\n#\tx', 2, /tab/],
  ['a second document', 'a: 1\n---\nb: 2', 2, /second document/],
  ['two markers', '---\n---\na: 1', 2, /second document/],
  ['a marker at the end', 'a: 1\n# x\n---', 3, /second document/],
  ['a value beside the marker', '# x\n--- a', 2, /second document/],
  ['a map beside the marker', '--- a: 1', 1, /second document/],
  ['a comment that touches the marker', '---#x\na: 1', 1, KEY],
  ['a comment without space beside the marker', '---\n--- #x', 2, /second document/],
  ['an end of the document', 'a: 1\n...', 2, /second document/],
  ['an end of the document before it', '...\na: 1', 1, /second document/],
  ['an end beside a marker', '... ---\na: 1', 1, /second document/],
  ['a marker beside a marker', '--- ---\na: 1', 1, /second document/],
  ['an end of the document with a comment', 'a: 1\n... # x', 2, /second document/],
  ...[
    '\0',
    '\x01',
    '\x08',
    '\x0b',
    '\x0c',
    '\r',
    '\x1f',
    '\x1b',
    '\x7f',
    '\x80',
    '\x85',
    '\x9f',
    '\u2028',
    '\u2029',
    '\uFEFF',
    '\uFFFE',
    '\uFFFF',
    '\uD800',
    '\uDBFF',
    '\uDC00',
    '\uDFFF',
  ].map(
    (character) =>
      [
        `the character U+${character.charCodeAt(0).toString(16)}`,
        `z: 0\na: "x${character}y"`,
        2,
        CHARACTER,
      ] as const,
  ),
  ['a second byte-order mark', '\uFEFF\uFEFFa: 1', 1, CHARACTER],
  ['half a surrogate pair after a whole one', 'a: 😀\uD83D', 1, CHARACTER],
  ['a control character in a comment', 'a: 1\n# \x07', 2, CHARACTER],
  ['a lone carriage return', 'a: 1\rb: 2', 1, CHARACTER],
];

for (const [what, source, line, reason] of FAULTS) {
  test(`refuses ${what} and names line ${line}`, () => {
    assert.throws(
      () => parseYaml(source, 'x.yml'),
      (failure) =>
        failure instanceof SettingProblem &&
        failure.message.startsWith(`x.yml, line ${line}: `) &&
        reason.test(failure.message),
    );
  });
}

/** A document, and the problem of its second line. */
const WORDINGS: readonly (readonly [source: string, fault: string])[] = [
  ['z: 0\na', 'a missing "key: value", a quote not closed on its line, or a list item out of place'],
  ['z: 0\n1: 1', 'a key that is not text of at most 1000 characters; quote or shorten it'],
  ['z: 0\nz: 1', 'a key that is already set; remove one of the two'],
  ['z:\n- []', 'a list inside a list'],
  ['z: 0\n  y: 1', 'the indentation fits no map; a value must end on the line where it begins'],
  ['z: 0\na:\t1', 'a tab or another character that is not supported; use spaces'],
  ['z: 0\n---', 'a directive or a second document; remove it'],
  ['z: 0\na: "', 'a quote or list not closed on its line, an unknown escape, or something after the value'],
  ['z: 0\na: &b 1', 'a list item on the line of its key, or unsupported YAML; quote it'],
];

for (const [source, fault] of WORDINGS) {
  test(`reports for ${text(source)}: ${fault}`, () => {
    assert.throws(
      () => parseYaml(source, 'x.yml'),
      new SettingProblem(`x.yml, line ${source.split('\n').length}: ${fault}`),
    );
  });
}
