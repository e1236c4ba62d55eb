/* The pictures of the documents: each is drawn, taken or measured by a command, and shows what is there now. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { test } from 'node:test';
import { measured, panelsDrawn } from './dashboard.ts';
import { linksIn, PAGES, read, ROOT } from './pages.ts';
import { FOLDER, PICTURES } from './pictures.ts';

const files = readdirSync(new URL(`${FOLDER}/`, ROOT)).map((name) => `${FOLDER}/${name}`);

/** GitHub scales a picture down to the page, npm loads it each time. */
const MOST_BYTES = 150_000;

for (const [name, current] of Object.entries(PICTURES)) {
  test(`${name} is what npm run docs would draw`, () => assert.equal(read(name), current));
}

test('every picture is shown by a page, and is small', () => {
  const shown = PAGES.flatMap(linksIn);
  for (const name of files) {
    assert.ok(
      shown.some((link) => link === name || name === `docs/${link}`),
      name,
    );
    assert.ok(statSync(new URL(name, ROOT)).size <= MOST_BYTES, name);
  }
});

test('the picture of the dashboard was measured with the expressions of the panels that it shows', () => {
  const expressions = panelsDrawn().flatMap(({ targets }) => targets.map(({ expr }) => expr));
  const { results } = measured();
  assert.deepEqual(Object.keys(results).sort(), [...new Set(expressions)].sort());
});

test('every picture that is not drawn is one of the demo, a PNG of 1,200 by 700 pixels', () => {
  const photos = files.filter((name) => !name.endsWith('.svg'));
  assert.deepEqual(photos, [`${FOLDER}/demo-dark.png`, `${FOLDER}/demo-light.png`]);
  for (const name of photos) {
    const header = readFileSync(new URL(name, ROOT)).subarray(0, 24);
    assert.equal(header.toString('latin1', 1, 4), 'PNG', name);
    assert.deepEqual([header.readUInt32BE(16), header.readUInt32BE(20)], [1200, 700], name);
  }
});
