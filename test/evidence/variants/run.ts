/*
 * Runs the tests on the service with the memory of tokens off and at one entry, and with one request in a
 * batch: neither may change what is accepted. Names choose variants.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describeFigures, runTests } from '../matrix/run-tests.ts';
import { VARIANTS, type Variant } from './variants.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** A copy of the project with the change made and built; modules are shared. */
function makeTree({ file, was, becomes }: Variant): string {
  const tree = mkdtempSync(join(tmpdir(), 'gatehouse-variant-'));
  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  for (const name of files.trim().split('\n')) cpSync(join(ROOT, name), join(tree, name));
  symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'));
  const text = readFileSync(join(tree, file), 'utf8');
  if (text.split(was).length !== 2) throw new Error(`${file} does not have "${was}" once`);
  writeFileSync(join(tree, file), text.replace(was, becomes));
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: tree });
  return tree;
}

const asked = process.argv.slice(2);
let isGood = true;

for (const variant of VARIANTS.filter(({ name }) => asked.length === 0 || asked.includes(name))) {
  const tree = makeTree(variant);
  try {
    const figures = await runTests(process.execPath, tree);
    console.log(describeFigures(variant.name, figures));
    isGood &&= figures.failed === 0;
  } finally {
    rmSync(tree, { recursive: true });
  }
}

process.exitCode = isGood ? 0 : 1;
