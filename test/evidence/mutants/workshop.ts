/* A copy of src and test in a temporary directory, compiled once together with all mutants of one file. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { applied, describe, mutationsOf, type Mutation } from './mutations.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const LEFT_OUT = /\/(?:node_modules|bench|demo)$/;

export interface Mutant extends Mutation, ReturnType<typeof describe> {
  /** The compiled text. */
  readonly text: string;
}

export interface Workshop {
  /** The path of the compiled copy. */
  readonly directory: string;
  readonly mutants: readonly Mutant[];
  /** The compiled text of the unchanged file. */
  readonly original: string;
  /** Replaces the compiled text of the file. */
  replace(text: string): void;
  close(): void;
}

const compiled = (file: string) => file.replace(/\.ts$/, '.js');

const mutantFile = (file: string, index: number) => file.replace(/\.ts$/, `.mutant-${index}.ts`);

/** Compiles without checking types. Returns the files with other errors. */
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

export function openWorkshop(file: string): Workshop {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-mutants-'));
  const out = join(directory, 'out');
  const close = () => rmSync(directory, { recursive: true, force: true });
  const isWanted = (path: string) => !LEFT_OUT.test(path);
  for (const part of ['src', 'test']) {
    cpSync(join(ROOT, part), join(directory, part), { recursive: true, filter: isWanted });
  }

  cpSync(join(directory, 'test'), join(out, 'test'), {
    recursive: true,
    filter: (path) => !path.endsWith('.ts'),
  });

  for (const place of [directory, out]) cpSync(join(ROOT, 'package.json'), join(place, 'package.json'));
  cpSync(join(ROOT, '.env.example'), join(out, '.env.example'));
  // For tests that run a module of src, the whole service, or a sample of a page in another process.
  for (const part of ['node_modules', 'docs']) symlinkSync(join(ROOT, part), join(out, part));
  symlinkSync('src', join(out, 'dist'));

  const source = readFileSync(join(directory, 'src', file), 'utf8');
  const found = mutationsOf(source).map((mutation, index) => {
    const name = mutantFile(file, index);
    writeFileSync(join(directory, 'src', name), applied(source, mutation));
    return { ...mutation, ...describe(source, mutation), name };
  });
  const faulty = compile(directory);
  renameSources(join(out, 'test'));

  const textOf = (name: string) => readFileSync(join(out, 'src', compiled(name)), 'utf8');
  const original = textOf(file);
  const seen = new Set([original]);
  const mutants = found.flatMap(({ name, ...mutant }) => {
    if (faulty.has(`src/${name}`)) return [];
    const text = textOf(name);
    if (seen.has(text)) return [];
    seen.add(text);
    return [{ ...mutant, text }];
  });
  const replace = (text: string) => writeFileSync(join(out, 'src', compiled(file)), text);
  return { directory: out, mutants, original, replace, close };
}

/** Where a test names a file of src, or its own, in a string, replaces `.ts` by `.js`. */
function renameSources(directory: string): void {
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' });
  for (const name of names.filter((one) => one.endsWith('.test.js'))) {
    const text = readFileSync(join(directory, name), 'utf8');
    const renamed = text.replace(/(\/src\/[\w/-]+|URL\('[\w./-]+)\.ts'/g, "$1.js'");
    if (renamed !== text) writeFileSync(join(directory, name), renamed);
  }
}
