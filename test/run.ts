/* Runs the tests, many files in a process, since most of them take less time than a process needs to load what
   they test. With the word `all` also the long ones (`*.long.ts`), each in a process of its own.
   Other words choose files by their names: `npm test verify/keys/fetch`. What begins with `--` is for Node's
   own runner, and it prints and exits as that does. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const TEST = fileURLToPath(new URL('.', import.meta.url));
const FILES_OF_A_PROCESS = 64;
const PROCESSES = 4;
/** A process that takes longer hangs: it is killed and reported. */
const MOST_MILLIS = 600_000;

const words = process.argv.slice(2);
const options = words.filter((word) => word.startsWith('--'));
const chosen = words.filter((word) => word !== 'all' && !options.includes(word));

/** Below `test/`. The packages of the tools have a gigabyte, and links back to this repository. */
function namesIn(folder = ''): string[] {
  return readdirSync(join(TEST, folder), { withFileTypes: true }).flatMap((entry) => {
    const name = join(folder, entry.name);
    if (entry.name === 'node_modules') return [];
    return entry.isDirectory() ? namesIn(name) : [name];
  });
}

const files = namesIn()
  .filter((name) => chosen.length === 0 || chosen.some((word) => name.includes(word)))
  .sort();

const endingIn = (ending: string) => files.filter((name) => name.endsWith(ending));

/** The files of each process: it gets some of every folder, since some folders take much longer than others. */
function groups(): string[][] {
  const names = endingIn('.test.ts');
  const parts = Math.ceil(names.length / FILES_OF_A_PROCESS);
  return Array.from({ length: parts }, (_, part) => names.filter((_, place) => place % parts === part));
}

/**
 * The text of a module that runs test files, each as a suite. Loads one after the other: while several wait
 * for a shared module, Node would assign their tests to the wrong suites. Code that exits with 0 would end
 * the tests of all files in the process, unseen.
 */
const together = (names: readonly string[]) => `
import { after, describe } from 'node:test';

let isOver = false;
after(() => {
  isOver = true;
});
process.on('exit', () => {
  if (isOver) return;
  console.error('the process ended before its tests');
  process.exitCode = 1;
});

const load = (name, url) =>
  new Promise((resolve, reject) => {
    describe(name, () => import(url).then(resolve, (error) => {
      reject(error);
      throw error;
    }));
  });

${names.map((name) => `await load('${name}', '${pathToFileURL(join(TEST, name)).href}');`).join('\n')}
`;

/**
 * While others take the processors, a process can be stopped between its last look at the port and the close; and a
 * fork runs as many processes as this.
 */
const ALONE = ['faults/rollout.long.ts', 'fork.long.ts'];

/**
 * Coverage is that of the short tests and of the services that they start. It costs half as much again for a process,
 * so that none is taken of those that only report, nor of what a long test starts.
 */
const COVERAGE = `
const { NODE_TEST_CONTEXT, NODE_V8_COVERAGE } = process.env;
if (NODE_TEST_CONTEXT !== undefined && NODE_V8_COVERAGE !== undefined) {
  delete process.env.NODE_V8_COVERAGE;
  if (!process.argv[1].endsWith('.long.ts')) process.env.SERVICE_COVERAGE = NODE_V8_COVERAGE;
}
`;

const isAlone = (file: string) => ALONE.some((name) => file.endsWith(name));

const long = words.includes('all') ? endingIn('.long.ts').map((name) => join(TEST, name)) : [];

if (long.length === 0 && groups().length === 0) {
  // Without a file, Node would look for tests itself.
  console.error(
    `no test file has ${chosen.join(' or ')} in its path; with the word all, long ones are run too`,
  );
  process.exit(1);
}

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-tests-'));

try {
  const grouped = groups().map((names, index) => {
    const file = join(directory, `${index}.test.mjs`);
    writeFileSync(file, together(names));
    return file;
  });
  const bounds = [`--test-concurrency=${PROCESSES}`, `--test-timeout=${MOST_MILLIS}`];
  const own = ['--test', ...bounds, '--test-reporter=spec'];
  const coverage = join(directory, 'coverage.mjs');
  writeFileSync(coverage, COVERAGE);
  const flags = ['--import', 'tsx', '--import', pathToFileURL(coverage).href, ...own, ...options];

  const run = (files: readonly string[]): number => {
    if (files.length === 0) return 0;

    const { status } = spawnSync(process.execPath, [...flags, ...files], {
      cwd: dirname(TEST),
      env: {
        ...process.env,
        MACHINE_CA_CERTS: process.env.NODE_EXTRA_CA_CERTS,
        NODE_EXTRA_CA_CERTS: join(TEST, 'idp/tls/authority.pem'),
      },
      stdio: 'inherit',
    });
    return status ?? 1;
  };

  const alone = long.filter(isAlone).map((file) => run([file]));
  const others = run([...long.filter((file) => !isAlone(file)), ...grouped]);
  process.exitCode = [...alone, others].find((status) => status !== 0) ?? 0;
} finally {
  rmSync(directory, { recursive: true });
}
