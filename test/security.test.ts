/* docs/attacks.md has every known attack. Each item names existing files, and a test cites its id. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { codeIn, read, ROOT } from './docs/pages.ts';
import { filesBelow } from './support/tree.ts';

const ATTACKS = read('docs/attacks.md');

/** How many items each section has. */
const CATALOGUE = { A: 14, B: 8, C: 11, D: 12, E: 16, F: 13, G: 16, H: 4, I: 6, J: 21 };

const IDS = Object.entries(CATALOGUE).flatMap(([section, count]) =>
  Array.from({ length: count }, (_, index) => `${section}${index + 1}`),
);

/** The id of each attack, and the text of its item. */
const items = [...ATTACKS.matchAll(/^- \*\*([A-J]\d+)\*\* ((?:.+\n)(?:  .+\n)*)/gm)];

const isThere = (name: string) => existsSync(new URL(name, ROOT));

test('docs/attacks.md has every attack once', () => {
  assert.deepEqual(items.map(([, id]) => id).toSorted(), IDS.toSorted());
});

const TESTS = filesBelow(new URL('test/', ROOT))
  .filter((name) => /\.(?:test|long)\.ts$/.test(name) && !name.includes('node_modules'))
  .map((name) => read(`test/${name}`));

/** Whether the name of a test cites the id. */
const isShown = (id: string) => {
  const citation = new RegExp(String.raw`\[[^\]\n]*\b${id}\b[^\]\n]*\]`);
  return TESTS.some((text) => citation.test(text));
};

for (const [, id = '', text = ''] of items) {
  test(`docs/attacks.md names existing files for ${id}, which a test cites`, () => {
    const files = codeIn(text).filter((name) => name.endsWith('.ts'));
    assert.ok(files.length > 0 && isShown(id));
    assert.deepEqual(
      files.filter((name) => !isThere(`src/${name}`)),
      [],
    );
  });
}
