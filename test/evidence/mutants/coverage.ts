/* Which tests cover which file of src, nearest first, as computed from the imports of test files, so that it
   is never out of date. */
import { readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { filesBelow } from '../../support/tree.ts';
import { importsOf } from '../../support/imports.ts';

/** `together` run in a worker, `alone` each in its own process. Paths are relative to `test/`. */
export interface Coverage {
  readonly together: readonly string[];
  readonly alone: readonly string[];
}

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
/** Tests of the fake provider, the demo, the documents and the tools. */
const NOT_OF_SRC = /^test\/(?:idp|demo|docs|example|package|clauses|evidence|vectors|[a-z.]+\.test\.ts)/;
const OF_SERVER = 'test/server.wire.test.ts';
/** What the built service loads, whatever its arguments. */
const OF_PROCESS = ['src/server.ts', 'src/process/report.ts', 'src/process/probe.ts'];
/** Tests that open sockets, start processes or change all of their own process. */
const ALONE = /^node:(?:child_process|dns|http|https|module|net|tls|diagnostics_channel)$/;

/** The parts of `node:test` that the worker has. */
const OF_WORKER = ['describe', 'test'];

const texts = new Map<string, string>();

const textOf = (path: string) => {
  const text = texts.get(path) ?? readFileSync(ROOT + path, 'utf8');
  texts.set(path, text);
  return text;
};

/**
 * The modules that a module imports at run time, at its start or when they are needed. What starts the built
 * service imports all of it, and what reads the folder of profiles imports each of them.
 */
function importsFrom(path: string): string[] {
  const text = textOf(path);
  const values = importsOf(text).filter(({ isType }) => !isType);
  const later = [...text.matchAll(/\bimport\('([^']+)'\)/g)].map(([, from = '']) => from);
  const modules = [...values.map(({ from }) => from), ...later].map((from) =>
    from.startsWith('.') ? posix.join(posix.dirname(path), from) : from,
  );
  if (text.includes('dist/server.js')) modules.push(...OF_PROCESS);
  if (text.includes('/src/profiles/')) {
    modules.push(...readdirSync(`${ROOT}src/profiles`).map((name) => `src/profiles/${name}`));
  }
  // There it only finds source maps; tests change modules of Node with it.
  return path.startsWith('src/') ? modules.filter((name) => name !== 'node:module') : modules;
}

/** Each module that a test loads, with its distance from the test. */
function stepsFrom(test: string): ReadonlyMap<string, number> {
  const steps = new Map([[test, 0]]);
  for (const [path, step] of steps) {
    if (!path.endsWith('.ts')) continue;
    for (const next of importsFrom(path)) {
      if (!steps.has(next)) steps.set(next, step + 1);
    }
  }
  return steps;
}

interface Test {
  readonly path: string;
  readonly steps: ReadonlyMap<string, number>;
  readonly isAlone: boolean;
}

function readTest(path: string): Test {
  const steps = stepsFrom(path);
  const ofRunner = importsOf(textOf(path)).find(({ from }) => from === 'node:test')?.names ?? [];
  const usesContext = /\b(?:test|t|context)\.(?:test|mock|signal)\b|timeout: /.test(textOf(path));
  const isAlone =
    usesContext ||
    ofRunner.some((name) => !OF_WORKER.includes(name)) ||
    [...steps.keys()].some((module) => ALONE.test(module));
  return { path, steps, isAlone };
}

const nameOf = ({ path }: Test) => path.slice('test/'.length);

const tests = filesBelow(`${ROOT}test/`)
  .map((name) => `test/${name}`)
  .filter((path) => path.endsWith('.test.ts') && (path === OF_SERVER || !NOT_OF_SRC.test(path)))
  .sort()
  .map(readTest);

/** All that cover anything. */
export const COVERING: Coverage = {
  together: tests.filter(({ isAlone }) => !isAlone).map(nameOf),
  alone: tests.filter(({ isAlone }) => isAlone).map(nameOf),
};

/** Every file of src that has code. */
export const FILES = readdirSync(`${ROOT}src`, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .sort();

/**
 * First tests with the file's name, then those of its folder, then others; in each group those over a socket
 * last, and otherwise by distance and number of other imports.
 */
export function coverageOf(file: string): Coverage {
  const source = `src/${file}`;
  const isOwn = (path: string) => path === `test/${file.slice(0, -3)}.test.ts`;
  const isNamed = (path: string) => path.startsWith(`test/${file.slice(0, -2)}`);
  const isBeside = (path: string) => posix.dirname(path) === `test/${posix.dirname(file)}`;

  const distanceOf = ({ path, steps }: Test) => {
    // Its own test has that name, and is in that folder too.
    const nearness = [!isOwn(path), !isNamed(path), !isBeside(path)].filter(Boolean).length;
    // Sockets take longer.
    const isSlow = path.endsWith('.wire.test.ts');
    return nearness * 10_000 + Number(isSlow) * 5_000 + (steps.get(source) ?? 0) * 100 + steps.size;
  };

  const covering = tests
    .filter(({ steps }) => steps.has(source))
    .sort((one, other) => distanceOf(one) - distanceOf(other));

  const paths = (isAlone: boolean) => covering.filter((test) => test.isAlone === isAlone).map(nameOf);

  return { together: paths(false), alone: paths(true) };
}
