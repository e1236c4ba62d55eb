/* SECURITY.md names every file that a program loads, and no other: each row, beside the first rows that it
   needs, is all that its import path loads. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AS_NEEDED, closureOf, readSources } from '../support/closures.ts';
import { codeIn, read, tableUnder } from './pages.ts';
import type { Cells } from './tables.ts';

const sources = readSources();

const rows = tableUnder('SECURITY.md', 'What to read');

/** The files of a path: one, or all in a folder. */
function filesOf(path = ''): readonly string[] {
  const files = [...sources.keys()].filter(
    (file) => file === `${path}.ts` || (/\/$/.test(path) && file.startsWith(path)),
  );
  return files.length > 0 ? files : assert.fail(`src has no ${path}`);
}

/** The files that the middle cell of a row names. */
function filesNamedIn([, cell = '']: Cells): readonly string[] {
  return [...cell.matchAll(/`([^`]+)`(?: \(except ([^)]+)\))?/g)].flatMap(([, path, exceptions = '']) => {
    const left = codeIn(exceptions).flatMap(filesOf);
    return filesOf(path).filter((file) => !left.includes(file));
  });
}

/** The files of these rows. A file that stands in two of them stands there twice. */
const filesIn = (some: readonly Cells[]) => some.flatMap(filesNamedIn).toSorted();

/** What a program loads that enters there, without the parts that a process imports for its settings. */
const loadedFrom = (...entries: readonly string[]) => [...closureOf({ entries }, sources).files];

/** What `runService` imports when it is called. */
const PROCESS = ['process/run.ts', ...AS_NEEDED];

/** For each program, the entries, and the rows that it needs. */
const PROGRAMS: Readonly<Record<string, readonly [needed: readonly number[], entries: readonly string[]]>> = {
  createGate: [[0], ['gate.ts']],
  createService: [
    [0, 1],
    ['gate.ts', 'gatehouse.ts'],
  ],
  'runService loadSettings': [
    [0, 1, 2],
    ['gate.ts', 'gatehouse.ts', ...PROCESS],
  ],
  'server.js': [
    [0, 1, 2, 3],
    ['gate.ts', 'gatehouse.ts', 'server.ts', ...PROCESS],
  ],
  runForwardAuth: [
    [0, 1, 2, 4],
    ['gate.ts', 'gatehouse.ts', 'options/forward-auth.ts', ...PROCESS],
  ],
};

const { exports } = JSON.parse(read('package.json')) as { exports: Readonly<Record<string, unknown>> };

/** Paths of parts. Tests load the testing path, not a deployment. */
const PARTS = Object.keys(exports)
  .filter((path) => !['.', './gate', './testing', './package.json'].includes(path))
  .map((path) => path.slice(2));

describe('SECURITY.md lists what to read', () => {
  for (const [name, [needed, entries]] of Object.entries(PROGRAMS)) {
    test(`with ${name}: all that it loads`, () => {
      const last = rows[needed.at(-1)!] ?? [];
      assert.deepEqual(codeIn(last[0] ?? ''), name.split(' '));
      const listed = filesIn(needed.map((index) => rows[index] ?? []));
      const loaded = loadedFrom(...entries);
      // A fork has files of its own beside the profiles.
      const isOfFork = (file: string) => file.startsWith('profiles/') && !loaded.includes(file);
      assert.deepEqual(
        listed.filter((file) => !isOfFork(file)),
        loaded,
      );
    });
  }

  for (const part of PARTS) {
    test(`with gatehouse-http/${part}: all that it loads, beside the gate`, () => {
      const row = rows.find(([when = '']) => codeIn(when).includes(`gatehouse-http/${part}`)) ?? [];
      const { files } = closureOf({ entries: [`${part}.ts`], hasOptions: true }, sources);
      const gate = loadedFrom('gate.ts');
      assert.deepEqual(
        filesIn([row]),
        files.filter((file) => !gate.includes(file)),
      );
    });
  }

  test('and leaves out only files that no program loads, and those for tests', () => {
    const left = [...sources.keys()].filter(
      (file) => !filesIn(rows).includes(file) && !/^testing\b/.test(file),
    );
    const { files } = closureOf(
      { entries: [...sources.keys()].filter((file) => !left.includes(file)), hasOptions: true },
      sources,
    );
    assert.deepEqual(
      left.filter((file) => files.includes(file)),
      [],
    );
    assert.deepEqual(left, ['gate/events.ts', 'gate/foreign/verdict.ts', 'gate/rules/further.ts']);
  });
});
