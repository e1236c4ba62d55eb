/* SECURITY.md held against the repository: no attack is missing, and every file that it names is there. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { codeIn, read, ROOT } from './docs/pages.ts';

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

const isThere = (name: string) => existsSync(new URL(name, ROOT));

test('SECURITY.md has every attack of the catalogue once', () => {
  assert.deepEqual(rows.map(([id]) => id).toSorted(), IDS.toSorted());
});

for (const [id = '', , stopped = '', shown = ''] of rows) {
  test(`SECURITY.md names for ${id} files and tests that are there`, () => {
    const files = codeIn(stopped).map((name) => `src/${name}`);
    const tests = codeIn(shown).map((name) => `test/${name}`);
    assert.ok(files.length > 0 && tests.length > 0);
    assert.deepEqual(
      [...files, ...tests].filter((name) => !isThere(name)),
      [],
    );
  });
}
