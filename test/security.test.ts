/* docs/attacks.md has every known attack, and each row names existing files and tests that cite its id. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { codeIn, read, ROOT } from './docs/pages.ts';

const ATTACKS = read('docs/attacks.md');

/** How many rows each section has. */
const CATALOGUE = { A: 14, B: 8, C: 11, D: 12, E: 16, F: 13, G: 16, H: 4, I: 6 };

/** Of a section that is not complete. */
const OTHERS = ['J1', 'J2', 'J3', 'J4', 'J5', 'J6', 'J7', 'J8', 'J9', 'J16', 'J17', 'J18', 'J20'];

const IDS = Object.entries(CATALOGUE)
  .flatMap(([section, rows]) => Array.from({ length: rows }, (_, index) => `${section}${index + 1}`))
  .concat(OTHERS);

const rows = [...ATTACKS.matchAll(/^\| ([A-J]\d+) \| (.+) \|$/gm)].map(([, id = '', rest = '']) => [
  id,
  ...rest.split(' | '),
]);

const isThere = (name: string) => existsSync(new URL(name, ROOT));

test('docs/attacks.md has every attack once', () => {
  assert.deepEqual(rows.map(([id]) => id).toSorted(), IDS.toSorted());
});

/** Whether the name of a test in the file cites the id. */
const shows = (file: string, id: string) =>
  new RegExp(String.raw`\[[^\]\n]*\b${id}\b[^\]\n]*\]`).test(read(file));

for (const [id = '', , stopped = '', shown = ''] of rows) {
  test(`docs/attacks.md names for ${id} existing files, and tests that cite it`, () => {
    const files = codeIn(stopped).filter((name) => name.endsWith('.ts'));
    const tests = codeIn(shown).map((name) => `test/${name}`);
    assert.ok(files.length > 0 && tests.length > 0);
    assert.deepEqual(
      files.filter((name) => !isThere(`src/${name}`)),
      [],
    );
    assert.deepEqual(
      tests.filter((name) => !isThere(name) || !shows(name, id)),
      [],
    );
  });
}
