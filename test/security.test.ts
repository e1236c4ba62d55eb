/* SECURITY.md held against the code and the tests: every file, function and test that it names is there, and no attack is missing. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

const ROOT = new URL('../', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, ROOT), 'utf8');
const SECURITY = read('SECURITY.md');

/** The catalogue of attacks: how many rows each of its sections has. */
const CATALOGUE = { A: 11, B: 8, C: 11, D: 9, E: 16, F: 10, G: 12 };
const IDS = Object.entries(CATALOGUE).flatMap(([section, rows]) =>
  Array.from({ length: rows }, (_, index) => `${section}${index + 1}`),
);

const rows = [...SECURITY.matchAll(/^\| ([A-G]\d+) \| (.+) \|$/gm)].map(([, id = '', rest = '']) => [
  id,
  ...rest.split(' | '),
]);

/** Names of tests as their files have them, with `…` for what is filled in. */
const namesIn = (file: string) =>
  [
    ...read(file).matchAll(/\b(?:test|describe)\(\s*(?:`([^`]*)`|'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")/g),
  ].map(([, template, single, double]) =>
    (template ?? single ?? double ?? '').replace(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, '…'),
  );

/** True when the source declares the name: a function, a value, a type, a method or an accessor. */
const declares = (source: string, name: string) =>
  new RegExp(
    [
      String.raw`\b(?:function|const|class|interface|type) ${name}\b`,
      String.raw`^  (?:async |static |get )*#?${name}\(`,
    ].join('|'),
    'm',
  ).test(source);

/** The named files of a cell, each with what follows it up to the next. */
const partsOf = (cell: string) =>
  [...cell.matchAll(/`((?:src|test)\/[\w/.-]+\.ts)`: ((?:(?!`(?:src|test)\/).)*)/g)].map(
    ([, file = '', rest = '']) => ({ file, rest }),
  );

test('SECURITY.md has every attack of the catalogue once', () => {
  assert.deepEqual(rows.map(([id]) => id).toSorted(), IDS.toSorted());
});

for (const [id = '', , ...cells] of rows.filter((row) => row.length === 4)) {
  test(`SECURITY.md names for ${id} functions that are there`, () => {
    const parts = partsOf(cells[0] ?? '');
    assert.ok(parts.length > 0, 'no file');
    for (const { file, rest } of parts) {
      const names = [...rest.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
      assert.ok(file.startsWith('src/') && names.length > 0, file);
      assert.deepEqual(
        names.filter((name) => !declares(read(file), name)),
        [],
        file,
      );
    }
  });
}

test('SECURITY.md names tests that are there', () => {
  for (const [id = '', ...cells] of rows) {
    const shown = partsOf(cells.at(-1) ?? '');
    assert.ok(shown.length > 0, `${id} names no test`);
    for (const { file, rest } of shown) {
      const quoted = [...rest.matchAll(/"([^"]+)"/g)].map(([, text = '']) => text);
      assert.ok(/\.(?:test|long)\.ts$/.test(file) && quoted.length > 0, `${id} ${file}`);
      const names = namesIn(file);
      assert.deepEqual(
        quoted.filter((text) => !names.some((name) => name.includes(text))),
        [],
        `${id} ${file}`,
      );
    }
  }
});

test('SECURITY.md has in its reading order every file of src once, and minutes that add up', () => {
  const steps = [...SECURITY.matchAll(/^\| \d .+ \| (.+) \| (\d+) \| `(.+)` \|$/gm)];
  const listed = steps.flatMap(([, files = '']) => [...files.matchAll(/`([^`]+)`/g)].map(([, name]) => name));
  const files = readdirSync(new URL('src', ROOT), { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  );
  assert.deepEqual(listed.toSorted(), files.map((name) => name.replaceAll('\\', '/')).sort());
  const minutes = steps.reduce((sum, [, , figure]) => sum + Number(figure), 0);
  assert.match(SECURITY, new RegExp(`\\b${minutes} minutes in all`));
  assert.deepEqual(
    steps.map(([, , , file = '']) => file).filter((file) => !existsSync(new URL(file, ROOT))),
    [],
  );
});

test('SECURITY.md names only files and scripts that are there', () => {
  const files = [...SECURITY.matchAll(/`((?:src|test)\/[\w./-]*)`/g)].map(([, name = '']) => name);
  assert.ok(files.length > 100);
  assert.deepEqual(
    files.filter((name) => !existsSync(new URL(name, ROOT))),
    [],
  );
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const named = [...SECURITY.matchAll(/\bnpm run ([\w:-]+)/g)].map(([, name = '']) => name);
  assert.deepEqual(
    named.filter((name) => !Object.hasOwn(scripts, name)),
    [],
  );
  const settings = [...SECURITY.matchAll(/`([A-Z]+_[A-Z_]+)`/g)]
    .map(([, name = '']) => name)
    .filter((name) => !/^(?:TOKEN_FLAWS|NODE_)/.test(name));
  assert.deepEqual(
    settings.filter((name) => !read('.env.example').includes(name)),
    [],
  );
});
