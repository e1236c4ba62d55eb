/* Packs the package, lets publint, attw and `npm publish --dry-run` look for faults, and puts it to use in a
   project of its own: on every line of Node it is imported and required, and the tests of test/example run;
   each TypeScript compiles them; each bundler makes one file of it.

   Shows: the package under `publint` and `attw`, on Node 20.12 to 26, with TypeScript 5.4 to 7, and bundled (`npm
   run evidence package bundles`).
   Takes: 1 min.
   Needs: packages. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  addExample,
  compile,
  EXPORTED,
  installInto,
  packInto,
  ROOT,
  straysOf,
} from '../../support/packed.ts';
import { useInOneFile } from './bundles.ts';

const TOOLS = fileURLToPath(new URL('../node_modules/', import.meta.url));

const NODES = ['node20-12', 'node20', 'node22', 'node24', 'node26'];

/** Each with the types of Node of this project, the new ones with the newest types, too. */
const COMPILERS = ['typescript5-4', 'typescript5-9', 'typescript7'];

const NEW_COMPILERS = ['typescript5-9', 'typescript7'];

/** As projects are configured: for Node, and for a bundler. */
const RESOLUTIONS: Readonly<Record<string, readonly string[]>> = {
  nodenext: ['--module', 'nodenext'],
  bundler: ['--module', 'esnext', '--moduleResolution', 'bundler'],
};

/** Unless it emits, TypeScript 5.4 does not report what cannot be declared. */
const FLAGS =
  '--declaration --emitDeclarationOnly --outDir types --strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess --allowImportingTsExtensions --target es2022 --types node';

/** Lines that must not compile. */
const WRONG = [
  `post('/a', open, ({ caller }) => ({ who: caller.subject }));`,
  `get('/a', optional, ({ caller }) => ({ who: caller.subject }));`,
  `get('/a', open, json(), () => ({}));`,
  `get('/a/{id}', open, ({ parameters }) => ({ name: parameters.name }));`,
  `get('/a', open, () => {});`,
  `get('/a', () => ({}));`,
  `post('/a', open, json({}), () => ({}));`,
  `get('/a', needs(), () => ({}));`,
];

const IMPORTED = `
import * as one from 'gatehouse-http';
import * as gate from 'gatehouse-http/gate';
import * as testing from 'gatehouse-http/testing';
import { createRequire } from 'node:module';
const required = createRequire(import.meta.url);
const names = (all) => Object.keys(all).filter((name) => !['default', 'module.exports', '__esModule'].includes(name)).sort().join();
for (const [name, all] of Object.entries({ 'gatehouse-http': one, 'gatehouse-http/gate': gate, 'gatehouse-http/testing': testing })) {
  const other = required(name);
  if (names(all) !== names(other) || Object.keys(other).some((key) => all[key] !== other[key])) process.exit(1);
}
process.stdout.write(String(Object.keys(required('gatehouse-http')).length));
`;

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-package-'));

/** Runs a program that must succeed, and returns its output. */
function run(command: string, words: readonly string[], cwd = directory): string {
  const { status, stdout, stderr } = spawnSync(command, words, { cwd, encoding: 'utf8' });
  assert.equal(status, 0, `${command} ${words.join(' ')}\n${stdout}${stderr}`);
  return stdout + stderr;
}

/** A dry run of publishing, in which npm must find nothing to correct. */
function publishForShow(tarball: string): void {
  const folder = join(directory, 'published');
  mkdirSync(folder);
  execFileSync('tar', ['xzf', tarball, '-C', folder]);
  const file = join(folder, 'package/package.json');
  // Publishing is up to the owner of a name.
  writeFileSync(file, readFileSync(file, 'utf8').replace('  "private": true,\n', ''));
  const said = run(
    'npm',
    ['publish', '--dry-run', '--ignore-scripts', '--tag', 'show'],
    join(folder, 'package'),
  );
  const warnings = said.split('\n').filter((line) => line.startsWith('npm warn publish'));
  assert.deepEqual(
    warnings.filter((line) => !line.includes('requires you to be logged in')),
    [],
  );
}

function lint(tarball: string): void {
  run(join(TOOLS, '.bin/publint'), ['--strict', tarball]);
  console.log('publint --strict: no finding');
  run(join(TOOLS, '.bin/attw'), [tarball]);
  console.log('attw: no finding');
  publishForShow(tarball);
  console.log('npm publish --dry-run: nothing to mend');
}

function useOnNode(name: string): void {
  const node = join(TOOLS, name, 'bin/node');
  const version = run(node, ['--version']).trim();
  const count = run(node, ['--input-type=module', '--eval', IMPORTED]);
  run(node, ['--test', 'dist/routes.tests.js']);
  console.log(`Node ${version}: ${count} names by import and require, the tests of the example pass`);
}

function versionOf(packageDirectory: string): string {
  const { version } = JSON.parse(readFileSync(join(packageDirectory, 'package.json'), 'utf8'));
  return version;
}

function useWithCompiler(name: string): void {
  const compiler = join(TOOLS, name);
  const files = ['src/main.ts', 'src/routes.tests.ts', 'wrong.ts', 'exported.ts', 'required.cts'];
  for (const [resolution, flags] of Object.entries(RESOLUTIONS)) {
    // A bundler does not use CommonJS files.
    const some = files.filter((file) => resolution === 'nodenext' || file !== 'required.cts');
    compile(directory, compiler, ...FLAGS.split(' '), ...flags, ...some);
  }
  const types = versionOf(join(directory, 'node_modules/@types/node'));
  console.log(
    `TypeScript ${versionOf(compiler)}, @types/node ${types}: ${Object.keys(RESOLUTIONS).join(', ')}, ${WRONG.length} wrong uses refused`,
  );
}

/** The types that a new project gets. */
function installNewestTypes(): void {
  const types = join(directory, 'node_modules/@types');
  rmSync(types);
  mkdirSync(types);
  symlinkSync(join(TOOLS, 'node-types26'), join(types, 'node'));
}

/** Compiles and runs the example, and uses that must not compile. */
function useExample(): void {
  addExample(directory);
  compile(directory, join(ROOT, 'node_modules/typescript'));
  // Its own compiler settings, which older compilers do not know.
  rmSync(join(directory, 'tsconfig.json'));
  const names = 'get, json, needs, open, optional, post';
  const refused = WRONG.map((line) => `// @ts-expect-error\n${line}\n`).join('');
  writeFileSync(
    join(directory, 'wrong.ts'),
    `import { ${names} } from 'gatehouse-http';\n${refused}void [needs];\n`,
  );
  writeFileSync(join(directory, 'exported.ts'), EXPORTED);
  const required = `import gatehouse = require('gatehouse-http');\nimport testing = require('gatehouse-http/testing');\n`;
  const use = `gatehouse.createService({ routes: [] }, testing.createTestIssuer().options);\n`;
  writeFileSync(join(directory, 'required.cts'), required + use);

  for (const name of NODES) useOnNode(name);
  for (const name of COMPILERS) useWithCompiler(name);
  installNewestTypes();
  for (const name of NEW_COMPILERS) useWithCompiler(name);
}

try {
  const packed = packInto(directory);
  assert.deepEqual(straysOf(packed), []);
  console.log(`${packed.filename}: ${packed.files.length} files, none but those of the package`);
  // `npm run evidence package bundles` runs the bundlers alone.
  const isWhole = process.argv[2] !== 'bundles';
  if (isWhole) lint(join(directory, packed.filename));
  installInto(directory, packed);
  await useInOneFile(directory, TOOLS);
  if (isWhole) useExample();
} finally {
  rmSync(directory, { recursive: true });
}
