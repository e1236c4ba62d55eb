/* A copy of the project with changes made to its source, and built. */
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
  symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'));
  for (const change of changes) make(tree, change);
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: tree });
  return tree;
}
