/* A copy of the project with changes made to its source, or as another commit has it, and built. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

export interface Change {
  /** From the root of the project. */
  readonly file: string;
  /** Stands there once. */
  readonly was: string;
  readonly becomes: string;
}

function make(tree: string, { file, was, becomes }: Change): void {
  const text = readFileSync(join(tree, file), 'utf8');
  if (text.split(was).length !== 2) throw new Error(`${file} does not have "${was}" once`);
  writeFileSync(join(tree, file), text.replace(was, becomes));
}

/** Returns its folder, which the caller removes. Links to the installed packages. */
export function makeTree(changes: readonly Change[]): string {
  const tree = mkdtempSync(join(tmpdir(), 'gatehouse-tree-'));
  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  for (const name of files.trim().split('\n')) cpSync(join(ROOT, name), join(tree, name));
  for (const change of changes) make(tree, change);
  build(tree);
  return tree;
}

/** The same for a commit, by any name that git knows. */
export function makeTreeOf(ref: string): string {
  const named = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${ref}^{commit}`];
  const commit = execFileSync('git', named, { cwd: ROOT, encoding: 'utf8' }).trim();
  const archive = execFileSync('git', ['archive', commit], { cwd: ROOT, maxBuffer: Infinity });
  const tree = mkdtempSync(join(tmpdir(), 'gatehouse-tree-'));
  execFileSync('tar', ['-x', '-C', tree], { input: archive });
  build(tree);
  return tree;
}

function build(tree: string): void {
  symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'));
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: tree });
}
