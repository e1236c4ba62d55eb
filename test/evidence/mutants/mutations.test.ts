/* The tokenizer and the operators: which mutants they make, and that they make none where nothing is
   computed. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { COVERING, coverageOf, FILES } from './coverage.ts';
import { functionAt, matcherOf, type Equivalent } from './equivalents.ts';
import { applied, describe, mutationsOf } from './mutations.ts';
import { withoutComments } from '../../support/imports.ts';
import { tokensOf } from '../../support/tokens.ts';

const SRC = new URL('../../../src/', import.meta.url);

const read = (file: string) => readFileSync(new URL(file, SRC), 'utf8');

const mutants = (source: string) => mutationsOf(source).map((mutation) => applied(source, mutation));

test('recognises string literals, templates, regular expressions and comments', () => {
  // ¬ stands for a backquote.
  const [source, ...expected] = [
    'a / b; // if (x)\n /* "y" */ f("\\"", \'it\\\'s\', /[/\'"]\\/¬/i.test(c)); ¬a${{ b: ¬c${d}¬ }.b} \\¬ // e¬;',
    'word a',
    'word b',
    'word f',
    'text "\\""',
    "text 'it\\'s'",
    'regex /[/\'"]\\/¬/i',
    'word test',
    'word c',
    'chunk a',
    'word b',
    'chunk c',
    'word d',
    'chunk ',
    'word b',
    'chunk  \\¬ // e',
  ].map((text) => text.replaceAll('¬', '`'));
  assert.deepEqual(
    tokensOf(source!)
      .filter(({ kind }) => kind !== 'sign')
      .map(({ kind, text }) => `${kind} ${text}`),
    expected,
  );
});

test('covers all of every file of src with tokens, except blanks, comments and back quotes', () => {
  for (const file of FILES) {
    const source = read(file);
    let end = 0;
    for (const token of tokensOf(source)) {
      assert.match(source.slice(end, token.start), /^(?:\s|`|\/\/.*|\/\*[^]*?\*\/)*$/, file);
      assert.equal(source.slice(token.start, token.end), token.text, file);
      end = token.end;
    }
  }
});

const CASES: readonly [source: string, ...mutants: string[]][] = [
  ['x = a < b;', 'x = a <= b;', 'x = a >= b;'],
  ['x = a === b;', 'x = a !== b;'],
  ['x = a && b;', 'x = a || b;'],
  ['x = a ?? b;', 'x = a && b;'],
  ['x = !a;', 'x = a;'],
  ['if (a(b)) return;', 'if (!(a(b))) return;', 'if (true) return;', 'if (false) return;'],
  ['x = f(a, b ? c : d);', 'x = f(a, !(b) ? c : d);', 'x = f(a, true ? c : d);', 'x = f(a, false ? c : d);'],
  ['throw f(a);', ';', 'return undefined;'],
  ['return f(a);', 'return undefined;'],
  ['return undefined;'],
  ['return false;', 'return true;'],
  ['const x = f;\ncheck(x, { y: [z] });', 'const x = f;\n;'],
  [
    "x = claims.iss + 'text';",
    "x = claims.iss - 'text';",
    "x = claims.iss_ + 'text';",
    "x = claims.iss + 'text~';",
  ],
  ["x = '';", "x = '~';"],
  ['x = `a${b}`;', 'x = `~a${b}`;'],
  ['const { a, b: c } = d;', 'const { a_: a, b: c } = d;', 'const { a, b_: c } = d;'],
  ['x = 60_000;', 'x = 60001;'],
  ['x = true;', 'x = false;'],
  ['x = a.every(b);', 'x = a.some(b);'],
  ['x = /^a$/i;', 'x = /a$/i;', 'x = /^a/i;'],
  ["import { a } from '../../mutants/b.ts';"],
  ['class A {\n  abstract b: C;\n  d?: E;\n  readonly f: G;\n  h: I;\n}'],
  [
    'if (a === b) throw c;',
    'if (a !== b) throw c;',
    'if (true) throw c;',
    'if (false) throw c;',
    'if (a === b) return undefined;',
  ],
  ["// if (a === 'b') throw c;"],
];

for (const [source, ...expected] of CASES) {
  const count = expected.length === 1 ? 'one mutant' : `${expected.length || 'no'} mutants`;

  test(`makes ${count} from ${source.replaceAll('\n', ' ')}`, () => {
    const made = mutants(source).filter((mutant) => !source.startsWith('x = ') || mutant.startsWith('x = '));
    assert.deepEqual(new Set(made), new Set(expected));
  });
}

test('states which line a mutant changes, and its text before and after', () => {
  const source = 'const a = 1;\n  for (const b of a)\n    b();\n';
  const removed = mutationsOf(source).find(({ operator }) => operator === 'effect');
  assert.deepEqual(describe(source, removed!), { line: 3, was: 'b();', becomes: ';' });
});

const NESTED = `
let first = 0;
class Store {
  #room = 0;
  read(at = 1) {
    return [this.#room, at].map((one) => one + 2);
  }
}
export const createStore = async (options: Options): Promise<Store> => {
  const write: Writer = (text) => text ?? '';
  return { write, end: () => write('', 3) };
};
function open<T>(value: T): T {
  let last = 0;
  last = 0;
  return value;
}`;

const changesOf = (source: string, text: string) =>
  mutationsOf(source).filter(({ start, end }) => source.slice(start, end) === text);

test('finds the nearest function with a name around a change', () => {
  const names = ['0', '1', '2', "''", '3'].map((text) =>
    changesOf(NESTED, text).map((change) => functionAt(NESTED, change)),
  );
  assert.deepEqual(names, [
    [undefined, undefined, 'open', 'open'],
    ['read'],
    ['read'],
    ['write', 'end'],
    ['end'],
  ]);
});

const MATCHES: readonly [
  what: string,
  count: number,
  equivalent: Parameters<ReturnType<typeof matcherOf>>[0],
][] = [
  [
    'the mutant with its function and change',
    1,
    { function: 'open', was: 'last = 0; last', becomes: 'last = 1; last' },
  ],
  ['a mutant with another layout', 1, { function: 'write', was: "text??''", becomes: "text\n  ?? '~'" }],
  ['a mutant without naming its function', 1, { was: 'first = 0', becomes: 'first = 1' }],
  [
    'no mutant if the text is in another function',
    0,
    { function: 'read', was: 'last = 0', becomes: 'last = 1' },
  ],
  ['no mutant if the text occurs twice', 0, { function: 'open', was: 'last = 0', becomes: 'last = 1' }],
  ['no mutant if the change differs', 0, { was: 'first = 0', becomes: 'first = 2' }],
];

for (const [what, count, equivalent] of MATCHES) {
  test(`an entry of equivalents.json matches ${what}`, () => {
    const isMatch = matcherOf(NESTED);
    assert.equal(mutationsOf(NESTED).filter((change) => isMatch(equivalent, change)).length, count);
  });
}

const AROUND = ['a();\nfunction f() {\n  b = 0;\n}', 'function f() {\n  c();\n  b = 0;\n}'];

test('an entry of equivalents.json matches its mutant however the code around its function and inside it changes', () => {
  const equivalent = { function: 'f', was: 'b = 0', becomes: 'b = 1' };
  for (const source of AROUND) {
    const isMatch = matcherOf(source);
    assert.equal(mutationsOf(source).filter((change) => isMatch(equivalent, change)).length, 1);
  }
});

test('every mutant that is explained as equivalent exists exactly once', () => {
  const explained: readonly Equivalent[] = JSON.parse(read('../test/evidence/mutants/equivalents.json'));
  for (const file of new Set(explained.map((one) => one.file))) {
    const mutations = mutationsOf(read(file));
    const isMatch = matcherOf(read(file));
    for (const one of explained.filter((other) => other.file === file)) {
      assert.equal(mutations.filter((change) => isMatch(one, change)).length, 1, `${file}: ${one.was}`);
    }
  }
});

/** A statement that is no declaration of types. */
const HAS_VALUES = /^(?!(?:import type|(?:export )?(?:type|interface))\b)\w/m;

test('finds the tests that cover each file of src, and puts its own test first', () => {
  for (const file of FILES) {
    const { together, alone } = coverageOf(file);
    // Doors run as processes and as packages, which no import shows. A file of types does not run.
    const isExempt = !file.includes('/') || !HAS_VALUES.test(withoutComments(read(file)));
    assert.ok(together.length + alone.length > 0 || isExempt, file);
    const own = file.replace(/\.ts$/, '.test.ts');
    const all = [together, alone].filter((names) => names.includes(own));
    for (const names of all) assert.equal(names[0], own);
  }
});

test('finds the test with the name of a file, even if that file is imported only when it is needed', () => {
  for (const file of FILES) {
    const named = COVERING.alone.find((name) => name === file.replace(/\.ts$/, '.wire.test.ts'));
    const { alone } = coverageOf(file);
    assert.ok(named === undefined || alone.includes(named), named);
  }
});

test('runs tests that open nothing in the worker, whatever parts of Node src imports for other purposes', () => {
  const { together } = coverageOf('verify/token/claims.ts');
  assert.ok(together.includes('verify/token/claims.test.ts'));
});
