/* The parser of `.env`: it accepts only what every release line of Node reads alike, and reports anything
   else with its line. */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { parseDotEnv } from '../../src/settings/dot-env.ts';
import { processorMillis } from '../support/processor-time.ts';

const BLANKS = ' '.repeat(60_000);

const show = (text: string) =>
  JSON.stringify(text).replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16)}`);

/** The values without invalid lines, and the numbers of invalid lines. */
function read(source: string): { values: Readonly<Record<string, unknown>>; faults: readonly number[] } {
  const problems: string[] = [];
  const entries = parseDotEnv(source, 'x.env', problems);
  const faults = problems.map((problem) => {
    const [, line, fault] = /^x\.env, line (\d+): (.*)$/.exec(problem) ?? [];
    assert.equal(
      fault,
      'is neither NAME=value in visible characters, nor a comment, nor empty; correct it, and quote a #',
    );
    return Number(line);
  });
  return { values: Object.fromEntries(entries.map(({ name, value }) => [name, value])), faults };
}

/** Lines without a setting. Some releases of Node would lose the setting below them. */
const NOTHING = [
  '',
  ' ',
  '\t',
  ' \t ',
  '\r',
  ' \r',
  '\v',
  '\f',
  '\u00a0',
  '\u3000',
  '\ufeff',
  '# x',
  '#',
  '#x',
  '#B=3',
  '  # x',
  '\t# x',
  ' # B=3',
  '# "x',
  "# it's",
];

for (const line of NOTHING) {
  test(`reads the settings around the line ${show(line)}, which sets nothing [H1]`, () => {
    assert.deepEqual(read(`A=1\n${line}\nB=2\n${line}`), { values: { A: '1', B: '2' }, faults: [] });
  });
}

/** Lines that are neither assignment, comment nor empty. */
const FAULTS = [
  '[section]',
  ';x',
  'x',
  'B',
  'export',
  'export B',
  '=',
  '=x',
  ' =',
  ' = x',
  '==',
  '<<<<<<< HEAD',
  '=======',
  '>>>>>>> x',
  '|||||||',
  '---',
  '-',
  'B: 2',
  'B.C=2',
  'B-C=2',
  '1B=2',
  'B C=2',
  'export B C=2',
  'export export B=2',
  'EXPORT B=2',
  '\u212aB=2',
  '"B"=2',
  'B[0]=2',
  'B+=2',
  'É=2',
  '$B=2',
  'set B=2;',
  'é',
  '!x',
  '// x',
  '"',
  // An unclosed quote, or something after a closed one, which Node drops or adds to the value.
  'B="2',
  "B='2",
  'B=`2',
  'B="',
  'B="2\'',
  'B="2 # "3',
  'B="2"3',
  'B="2" 3',
  'B="a\\"b"',
  "B='it''s'",
  'B="2", C=3',
  'B=\'2\'"3"',
  // Values of which Node drops everything from the `#`.
  'B=x#y',
  'B=#x',
  'B=x#y # z',
  'B="x"#y',
  // Characters that some editors show as the end of a line, unlike Node.
  'B=2\rC=3',
  '#\rB=2',
  'B=2\u2028C=3',
  '# x\u2029B=2',
  'B="2\rC"',
  'B="2\u2028C"',
  // What nobody sees. Node counts these blanks as part of the name or value.
  'B=\u00a02',
  "B= \u3000'2'",
  'B\u00a0=2',
  'export\u00a0B=2',
  'B=2\0',
  'B=a\0b',
  'B="a\0b"',
  '\0B=2',
  'B\x01=2',
  'B=\x1b[31m2',
  'B=2 # \x07',
  'B=2\x08',
  'B=2\x7f3',
  'B=2\vC=3',
  'B=2\fC=3',
  'B=2\x85C=3',
];

for (const line of FAULTS) {
  test(`refuses the line ${show(line)} with its number, and reads the settings around it [H1]`, () => {
    assert.deepEqual(read(`A=1\n${line}\nD=4\n`), { values: { A: '1', D: '4' }, faults: [2] });
  });
}

/** Lines that could make a pattern backtrack. */
const LONG: Readonly<Record<string, string>> = {
  'a value, blanks and more of it': `A=x${BLANKS}y`,
  'a value, blanks and what ends a line elsewhere': `A=x${BLANKS}\u2028`,
  'a quoted value, blanks and more': `A="x"${BLANKS}y`,
  'a quote that is not closed': `A="${BLANKS}`,
  'blanks of all kinds': `A=x${'\t \v'.repeat(20_000)}\ry`,
  'a name, blanks and no sign': `A${BLANKS}x`,
  'export and no name': `export${BLANKS}!`,
};

for (const [what, line] of Object.entries(LONG)) {
  test(`reads a very long line of ${what} in less than a second [C10]`, () => {
    const millis = processorMillis(() => parseDotEnv(line, 'x.env', []));
    assert.ok(millis < 1_000, `${millis} ms`);
  });
}

test('reports every invalid line of a file', () => {
  const source = 'A=1\n[x]\n\nB 2\r\n# x\nC="\n';
  assert.deepEqual(read(source), { values: { A: '1' }, faults: [2, 4, 6] });
});

test('refuses a value of several lines, line by line, so that no quote swallows the settings below it [H1]', () => {
  assert.deepEqual(read('A="x\nB=2\nC=y"\nD=4'), { values: { B: '2', C: 'y"', D: '4' }, faults: [1] });
});

/** What follows `A=`, and the value. */
const VALUES: readonly (readonly [written: string, value: string])[] = [
  ['1', '1'],
  ['', ''],
  [' ', ''],
  ['\t', ''],
  ['\t\t', ''],
  [' \t 1 \t ', '1'],
  ['1\r', '1'],
  [' 1\t\r', '1'],
  ['a b', 'a b'],
  ['a\tb', 'a\tb'],
  ['a=b', 'a=b'],
  ['=', '='],
  ['==x', '==x'],
  ['x # y', 'x'],
  ['x #', 'x'],
  [' # x', ''],
  [' # "x', ''],
  ['"x"', 'x'],
  ["'x'", 'x'],
  ['`x`', 'x'],
  ['""', ''],
  ["''", ''],
  ['``', ''],
  ['" x "', ' x '],
  ['"#x"', '#x'],
  ["'a=b'", 'a=b'],
  ['"x" # y', 'x'],
  ["'x'  ", 'x'],
  ['"x"\t', 'x'],
  ['"x"\r', 'x'],
  ['"it\'s"', "it's"],
  ['\'say "x"\'', 'say "x"'],
  ['`\'"`', '\'"'],
  ["it's", "it's"],
  ['a"b', 'a"b'],
  ['x "y', 'x "y'],
  ['a`b', 'a`b'],
  ['"a\\nb"', 'a\nb'],
  ["'a\\nb'", 'a\\nb'],
  ['a\\nb', 'a\\nb'],
  ['C:\\x', 'C:\\x'],
  ['"C:\\x"', 'C:\\x'],
  ['$x', '$x'],
  ['$' + '{x}', '$' + '{x}'],
  ['a \t b', 'a \t b'],
  ['a\uFEFFb', 'a\uFEFFb'],
  ['a\u00a0b', 'a\u00a0b'],
  ['é😀', 'é😀'],
];

for (const [written, value] of VALUES) {
  test(`reads ${show(`A=${written}`)} as ${show(value)}, whatever stands around it`, () => {
    for (const around of ['', ' ', '\t', '\u00a0']) {
      const source = `${around}A=${written}${around}\nB=2`;
      assert.deepEqual(read(source), { values: { A: value, B: '2' }, faults: [] });
    }
  });
}

for (const start of [
  'A',
  'A ',
  'A\t',
  ' A \t',
  'export A',
  'export\tA',
  '  export   A ',
  'exportA',
  '\ufeffA',
  '\ufeffexport A',
  '_',
  '_1',
  'a',
  'export',
]) {
  test(`reads the name of ${show(`${start}=1`)}`, () => {
    const name = start.replace(/^\s*(export\s+)?/, '').trim();
    for (const value of ['1', ' 1', '\t1']) {
      assert.deepEqual(read(`${start}=${value}\nB=2`).values, { [name]: '1', B: '2' });
    }
  });
}

test('reports a name that is set twice, with both lines, whatever the values are', () => {
  for (const second of ['IDP_DPOP_MODE=', 'IDP_DPOP_MODE=""', 'IDP_DPOP_MODE=ALLOWED']) {
    const problems: string[] = [];
    parseDotEnv(`IDP_DPOP_MODE=REQUIRED\n\n${second}\n`, 'x.env', problems);
    assert.deepEqual(problems, ['IDP_DPOP_MODE (x.env, line 3): is already set; remove one (x.env, line 1)']);
  }
});

test('compares names with their case when it looks for those that are set twice', () => {
  const problems: string[] = [];
  parseDotEnv('a=1\nA=2\nA_=3\na=4', 'x.env', problems);
  assert.deepEqual(problems, ['a (x.env, line 4): is already set; remove one (x.env, line 1)']);
});

test('reports the file and the line of every value', () => {
  const entries = parseDotEnv('A=1\n\nB=2', 'x.env', []);
  assert.deepEqual(
    entries.map(({ name, source }) => `${name} ${source}`),
    ['A x.env, line 1', 'B x.env, line 3'],
  );
});

test('reads __proto__ and constructor like any other name', () => {
  const entries = parseDotEnv('__proto__=1\nconstructor=2\nVALUE=3', 'x.env', []);
  assert.deepEqual(
    entries.map(({ name, value }) => [name, value]),
    [
      ['__proto__', '1'],
      ['constructor', '2'],
      ['VALUE', '3'],
    ],
  );
});
