/* The closures of the entry points of src: which files they load, and how their tokens are counted. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closureOf, countTokens, doorsOf, filesLoadedBy, readSources } from './support/closures.ts';

/** Counts leaves of TypeScript's parser, except for patterns and long texts. */
const COUNTS: Readonly<Record<string, number>> = {
  '': 0,
  '// a\n/* b\n   c */': 0,
  '#!/usr/bin/env node\na;': 2,
  "import type { A } from './a.ts';": 8,
  'class A {\n  #b?: A;\n}': 9,
  'const a = b?.c ?? 0x1f_0n;': 9,
  'a = /^[b/]+$/u;': 6,
  'a = b / c / d;': 8,
  "'a b'": 1,
  "'a\\\nb'": 2,
  '`a`': 1,
  '`a\nb\nc`': 3,
  '`${a}`': 3,
  '`a${b}c${`${d}`}`': 7,
  'f(`a`, {});\n`b`;': 10,
};

for (const [source, tokens] of Object.entries(COUNTS)) {
  test(`counts ${tokens} tokens in ${JSON.stringify(source)}`, () =>
    assert.equal(countTokens(source), tokens));
}

test('finds what a file loads, by static or dynamic imports, but neither types nor Node modules', () => {
  const source = `
import { join } from 'node:path';
import { a, type B } from './a.ts';
import type { C } from './type.ts';
import { type D } from '../type.ts';
export { e } from '../e.ts';
export type { F } from './type.ts';
// import { g } from './comment.ts';
const h: typeof import('./type.ts') = await import('./later.ts');
const i: import('./type.ts').I = require('./required.ts');
`;
  assert.deepEqual(filesLoadedBy('folder/file.ts', source), [
    'folder/a.ts',
    'e.ts',
    'folder/later.ts',
    'folder/required.ts',
  ]);
});

test('follows each file once, and the options only when asked to', () => {
  const sources = new Map([
    ['door.ts', "import { a } from './ring/a.ts';\nawait import('./options/b.ts');"],
    ['ring/a.ts', "import { d } from '../door.ts';"],
    ['ring/helper.ts', 'f();'],
    ['options/b.ts', "import { e } from '../ring/helper.ts';"],
    ['other.ts', 'f();'],
  ]);
  const entries = ['door.ts'];
  assert.deepEqual(closureOf({ entries }, sources), { files: ['door.ts', 'ring/a.ts'], tokens: 20 });
  assert.deepEqual(closureOf({ entries, hasOptions: true }, sources), {
    files: ['door.ts', 'options/b.ts', 'ring/a.ts', 'ring/helper.ts'],
    tokens: 31,
  });
});

test('follows the options that an option loads', () => {
  const sources = new Map([
    ['options/a.ts', "import { b } from './b.ts';\nimport { c } from '../ring/c.ts';"],
    ['options/b.ts', 'f();'],
    ['options/d.ts', 'f();'],
    ['ring/c.ts', "await import('../options/d.ts');"],
  ]);
  const { files } = closureOf({ entries: ['options/a.ts'] }, sources);
  assert.deepEqual(files, ['options/a.ts', 'options/b.ts', 'ring/c.ts']);
});

test('throws for a file that is not there', () =>
  assert.throws(() => closureOf({ entries: ['a.ts'] }, new Map([['a.ts', "import { b } from './b.ts';"]])), {
    message: 'loaded, but not there: src/b.ts',
  }));

test('finds the entry points of src, of which the first loads the fewest source tokens and the last loads every file', () => {
  const sources = readSources();
  const closures = doorsOf(sources).map((door) => closureOf(door, sources));
  const [verify, gate, ...wider] = closures.map(({ tokens }) => tokens);
  const all = closures.at(-1)!;
  assert.equal(all.files.length, sources.size);
  assert.ok(verify! < gate!);
  for (const tokens of wider) assert.ok(tokens >= gate! && tokens <= all.tokens);
});
