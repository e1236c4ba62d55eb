/* The package as other projects get it: packed, and installed into a folder that knows nothing of this one. */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export interface Packed {
  /** Of the tarball, in the folder into which it was packed. */
  readonly filename: string;
  /** What it holds. */
  readonly files: readonly string[];
}

export const npm = (directory: string, ...words: readonly string[]) =>
  execFileSync('npm', [...words, '--silent', '--no-audit', '--no-fund'], {
    cwd: directory,
    encoding: 'utf8',
  });

/** Packs what has been built. */
export function packInto(directory: string): Packed {
  const flags = ['--json', '--ignore-scripts', '--pack-destination', directory];
  const [{ filename, files }] = JSON.parse(npm(ROOT, 'pack', ...flags)) as [
    { filename: string; files: { path: string }[] },
  ];
  return { filename, files: files.map(({ path }) => path) };
}

/** What the tarball holds and should not. */
export const straysOf = ({ files }: Packed): readonly string[] =>
  files.filter(
    (path) =>
      !/^dist\/[\w./-]+\.(?:js|d\.ts)$/.test(path) &&
      !/^(?:dist\/package\.json|package\.json|(?:README|CHANGELOG|SECURITY)\.md|LICENSE)$/.test(path),
  );

/** Makes a project with the package and nothing else. No network is needed. */
export function installInto(directory: string, { filename }: Packed): void {
  writeFileSync(join(directory, 'package.json'), '{"name":"orders","private":true,"type":"module"}');
  npm(directory, 'install', '--offline', `./${filename}`);
}

/** Copies the example into the project, and gives it the types of Node that this one has. */
export function addExample(directory: string): void {
  const example = join(ROOT, 'test/example');
  for (const name of ['src', 'tsconfig.json']) {
    cpSync(join(example, name), join(directory, name), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules/@types'), join(directory, 'node_modules/@types'));
}

/** Compiles the project by the compiler of this folder; throws what the compiler says. */
export function compile(directory: string, compiler: string, ...flags: readonly string[]): void {
  const { status, stdout } = spawnSync(process.execPath, [join(compiler, 'bin/tsc'), ...flags], {
    cwd: directory,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(stdout);
}
