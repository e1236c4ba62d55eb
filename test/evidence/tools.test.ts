/* The evidence tools stay right: each has its entry, and the code that they change exists. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { countsOf, readEntered, WALKS } from './closures/entered.ts';
import { WORDS } from '../docs/constants.ts';
import { filesBelow } from '../support/tree.ts';
import { readResults } from './shortcuts/results.ts';
import { SHORTCUTS } from './shortcuts/shortcuts.ts';
import { importsOf } from '../support/imports.ts';
import { readTools, tableOfTools } from '../support/evidence.ts';
import { VARIANTS } from './variants/variants.ts';

const HERE = new URL('./', import.meta.url);
const ROOT = new URL('../../', HERE);

/** The package of an import: `@a/b/c` is in `@a/b`. */
const packageOf = (from: string) => /^(?:@[^/]+\/)?[^/]+/.exec(from)?.[0] ?? '';

const tools = readdirSync(HERE, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && entry.name !== 'node_modules')
  .map(({ name }) => name);

test('each tool says what it shows, how long it takes and what it needs', () => {
  assert.deepEqual(
    readTools().map(({ name }) => name),
    [...tools].sort(),
  );
});

test('what a tool shows has no figures, which nothing would hold, but versions and numbers of standards', () => {
  // Arguments are not in the document, and targets of links are no text.
  const others =
    / \([^()]+\)|\]\([^)]+\)|\b(?:Node|TypeScript|RFCs?) \d[\d.]*(?:(?:, | and | to )\d[\d.]*)*/g;
  const figure = new RegExp(
    `(?<!\\w)\\d|\\b(?:${WORDS.slice(1).join('|')}|million|(?:a|an) (?:second|minute|hour))\\b`,
  );
  assert.deepEqual(
    readTools().filter(({ shows }) => figure.test(shows.replaceAll(others, ''))),
    [],
  );
});

test('every tool that imports a package is listed as needing packages', () => {
  const { dependencies } = JSON.parse(readFileSync(new URL('package.json', HERE), 'utf8'));

  const importing = tools.filter((name) =>
    filesBelow(new URL(name, HERE))
      .filter((file) => file.endsWith('.ts'))
      .map((file) => readFileSync(new URL(`${name}/${file}`, HERE), 'utf8'))
      .some((text) => importsOf(text).some(({ from }) => Object.hasOwn(dependencies, packageOf(from)))),
  );
  const installed = readTools().filter(({ needsPackages }) => needsPackages);
  assert.deepEqual(
    importing.filter((name) => !installed.some((tool) => tool.name === name)),
    [],
  );
});

test('the table of tools fits into a terminal of 110 columns and cuts no text off', () => {
  const [tool] = readTools();
  const shows = 'see [docs/speed.md](docs/speed.md) '.repeat(9).trim();
  const text = tableOfTools([{ ...tool!, shows, takes: 'an hour and a half' }]);
  assert.ok(text.split('\n').every((line) => line.length <= 110));
  assert.equal(text.match(/docs\/speed\.md/g)?.length, 9);
  assert.match(text, /an hour/);
});

test('the tools share one private package, whose lock file fixes versions and names no registry', () => {
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
  test(`the optimisation "${name}", which the tool shortcuts undoes, exists in the code`, () => {
    for (const { file, was } of changes) {
      assert.equal(readFileSync(new URL(file, ROOT), 'utf8').split(was).length, 2, file);
    }
  });
}

test('each optimisation that the tool shortcuts undoes has its last result, and nothing else has', () => {
  const names = SHORTCUTS.map(({ name }) => name);
  assert.deepEqual(Object.keys(readResults()).sort(), names.sort());
});

test('every test that is listed as broken by a variant exists', () => {
  const texts = filesBelow(new URL('..', HERE))
    .filter((file) => file.endsWith('.test.ts') && !file.includes('node_modules'))
    .map((file) => readFileSync(new URL(`../${file}`, HERE), 'utf8'));
  const broken = VARIANTS.flatMap(({ breaks }) => breaks);
  assert.deepEqual(
    broken.filter((name) => !texts.some((text) => text.includes(`test('${name}'`))),
    [],
  );
});

test('the tool closures counts the functions that a warm request enters, and none that only a start needs', () => {
  const entered = readEntered();
  const named = (name: string) => entered[name]!.map(({ file, name: of }) => `${file} ${of}`);
  assert.deepEqual(
    Object.keys(entered),
    WALKS.map(({ name }) => name),
  );

  for (const [walk, others] of Object.entries({
    GET: ['service/connection/listener.ts #receive', 'profiles/b.ts listMessages'],
    check: ['verify/dpop/proof.ts checkProofHeader', 'verify/jws/jws.ts verifySignature'],
  })) {
    for (const one of ['gate/decide.ts decide', ...others]) assert.ok(named(walk).includes(one), one);
    assert.ok(!named(walk).some((one) => / create|\/options\.ts|^settings|^options|^testing/.test(one)));
    const { files, functions, nameless, calls } = countsOf(entered[walk]!);
    assert.ok(files < functions && nameless < functions && functions < calls);
  }

  // The token is cached.
  assert.ok(!named('GET').includes('verify/jws/jws.ts verifySignature'));
  for (const { line } of Object.values(entered).flat()) assert.ok(line > 1);
});
