/* The tools for evidence stay what they say: each has its entry, and what they change in the code is there to
   be changed. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { SHORTCUTS } from './shortcuts/shortcuts.ts';
import { VARIANTS } from './variants/variants.ts';

const HERE = new URL('./', import.meta.url);
const ROOT = new URL('../../', HERE);

const tools = readdirSync(HERE, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && entry.name !== 'node_modules')
  .map(({ name }) => name);

for (const name of tools) {
  test(`${name} has an entry that says what it does`, () => {
    const entry = new URL(`${name}/run.ts`, HERE);
    assert.ok(existsSync(entry));
    assert.match(readFileSync(entry, 'utf8'), /^\/\*/);
  });
}

test('the tools share one private package, locked to what it asks for and to no registry', () => {
  const read = (name: string) => JSON.parse(readFileSync(new URL(name, HERE), 'utf8'));
  const { private: isPrivate, dependencies } = read('package.json');
  const { packages } = read('package-lock.json');
  const own = tools.filter((name) => existsSync(new URL(`${name}/package.json`, HERE)));
  assert.deepEqual([isPrivate, packages[''].dependencies, own], [true, dependencies, []]);
  assert.deepEqual(
    Object.keys(packages).filter((path) => packages[path].resolved !== undefined),
    [],
  );
});

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
