/* The tools for evidence stay what they say: each has its entry, and what they change in the code is there to
   be changed. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { SHORTCUTS } from './shortcuts/shortcuts.ts';
import { VARIANTS } from './variants/variants.ts';

const HERE = new URL('./', import.meta.url);
const ROOT = new URL('../../', HERE);

for (const { name } of readdirSync(HERE, { withFileTypes: true }).filter((entry) => entry.isDirectory())) {
  test(`${name} has an entry that says what it does`, () => {
    const entry = new URL(`${name}/run.ts`, HERE);
    assert.ok(existsSync(entry));
    assert.match(readFileSync(entry, 'utf8'), /^\/\*/);
  });
}

for (const { name, file, was } of VARIANTS) {
  test(`the variant ${name} changes one place of ${file}`, () => {
    assert.equal(readFileSync(new URL(file, ROOT), 'utf8').split(was).length, 2);
  });
}

for (const { name, changes } of SHORTCUTS) {
  test(`the shortcut "${name}" is there to be taken out`, () => {
    for (const { file, was } of changes) {
      assert.equal(readFileSync(new URL(file, ROOT), 'utf8').split(was).length, 2, file);
    }
  });
}
