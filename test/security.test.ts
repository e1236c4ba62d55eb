/* SECURITY.md held against the repository: no attack is missing, and every file that it names is there. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { codeIn, read, ROOT } from './docs/pages.ts';

const SECURITY = read('SECURITY.md');

/** The catalogue of attacks: how many routes each of its sections has. */
const CATALOGUE = { A: 11, B: 8, C: 11, D: 12, E: 16, F: 13, G: 16, H: 4 };

const IDS = Object.entries(CATALOGUE).flatMap(([section, routes]) =>
  Array.from({ length: routes }, (_, index) => `${section}${index + 1}`),
);

const routes = [...SECURITY.matchAll(/^\| ([A-H]\d+) \| (.+) \|$/gm)].map(([, id = '', rest = '']) => [
  id,
  ...rest.split(' | '),
]);

const isThere = (name: string) => existsSync(new URL(name, ROOT));

test('SECURITY.md has every attack of the catalogue once', () => {
  assert.deepEqual(routes.map(([id]) => id).toSorted(), IDS.toSorted());
});

/** True when a test of the file has the id among what its name cites. */
const shows = (file: string, id: string) =>
  new RegExp(String.raw`\[[^\]\n]*\b${id}\b[^\]\n]*\]`).test(read(file));

for (const [id = '', , stopped = '', shown = ''] of routes) {
  test(`SECURITY.md names for ${id} files that are there, and tests that show it`, () => {
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
