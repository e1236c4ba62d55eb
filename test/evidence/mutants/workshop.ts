/* A copy of src and test in a temporary directory, compiled once together with all mutants of the chosen files. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { applied, describe, mutationsOf, type Mutation } from './mutations.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const LEFT_OUT = /\/(?:node_modules|bench|fuzz|idp-real|demo|readme)$/;

export interface Mutant extends Mutation, ReturnType<typeof describe> {
  /** Below src. */
  readonly file: string;
  /** The compiled text. */
  readonly text: string;
}

export interface Workshop {
  /** Where the compiled copy is. */
  readonly directory: string;
  readonly mutants: readonly Mutant[];
  /** The compiled text of a chosen file as it is. */
  original(file: string): string;
  /** Puts a compiled text in the place of a file's. */
  replace(file: string, text: string): void;
  close(): void;
}

const compiled = (file: string) => file.replace(/\.ts$/, '.js');
const mutantFile = (file: string, index: number) => file.replace(/\.ts$/, `.mutant-${index}.ts`);

/** Compiles without checking types; the files in which it finds other faults. */
function compile(directory: string): ReadonlySet<string> {
  const options = {
    noCheck: true,
    noResolve: true,
    types: [],
    rootDir: '.',
    outDir: 'out',
    sourceMap: false,
  };
  const project = {
    extends: join(ROOT, 'tsconfig.json'),
    compilerOptions: options,
    include: ['src', 'test'],
  };
  writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify(project));
  const arguments_ = [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', directory, '--pretty', 'false'];
  try {
    execFileSync(process.execPath, arguments_, { cwd: directory, encoding: 'utf8', maxBuffer: 2 ** 28 });
    return new Set();
  } catch (failure) {
    return new Set(
      [...String((failure as { stdout?: string }).stdout).matchAll(/^(\S+)\(\d+,\d+\): error/gm)].map(
        ([, file]) => file!,
      ),
    );
  }
}

export function openWorkshop(files: readonly string[]): Workshop {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-mutants-'));
  const out = join(directory, 'out');
  const close = () => rmSync(directory, { recursive: true, force: true });
  const isWanted = (path: string) => !LEFT_OUT.test(path);
  for (const part of ['src', 'test'])
    cpSync(join(ROOT, part), join(directory, part), { recursive: true, filter: isWanted });
  cpSync(join(directory, 'test'), join(out, 'test'), {
    recursive: true,
    filter: (path) => !path.endsWith('.ts'),
  });
  for (const place of [directory, out]) writeFileSync(join(place, 'package.json'), '{"type":"module"}');
  // For tests that run a module of src, or the whole service, in a process of its own.
  symlinkSync(join(ROOT, 'node_modules'), join(out, 'node_modules'));
  symlinkSync('src', join(out, 'dist'));

  const found = files.flatMap((file) => {
    const source = readFileSync(join(directory, 'src', file), 'utf8');
    return mutationsOf(source).map((mutation, index) => {
      writeFileSync(join(directory, 'src', mutantFile(file, index)), applied(source, mutation));
      return { ...mutation, ...describe(source, mutation), file, name: mutantFile(file, index) };
    });
  });
  const faulty = compile(directory);
  // These name a source file in a text.
  for (const test of ['keys/certificates', 'app', 'log']) {
    const path = join(out, `test/${test}.test.js`);
    writeFileSync(
      path,
      readFileSync(path, 'utf8').replaceAll("fetch.ts'", "fetch.js'").replaceAll('test\\.ts:', 'test\\.js:'),
    );
  }
  const textOf = (file: string) => readFileSync(join(out, 'src', compiled(file)), 'utf8');
  const originals = new Map(files.map((file) => [file, textOf(file)]));
  const seen = new Set(originals.values());
  const mutants = found
    .filter(({ name }) => !faulty.has(`src/${name}`))
    .flatMap(({ name, ...mutant }) => {
      const text = textOf(name);
      if (seen.has(text)) return [];
      seen.add(text);
      return [{ ...mutant, text }];
    });
  const replace = (file: string, text: string) => writeFileSync(join(out, 'src', compiled(file)), text);
  return { directory: out, mutants, original: (file) => originals.get(file)!, replace, close };
}
