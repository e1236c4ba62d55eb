/* The example as a project of its own, with the packed tarball: it compiles, its tests pass, and what it builds
   is what its image runs. */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { read, samplesUnder } from '../docs/pages.ts';
import { addExample, compile, installInto, packInto, ROOT } from '../support/packed.ts';

const EXAMPLE = join(ROOT, 'test/example');

const { scripts, dependencies } = JSON.parse(readFileSync(join(EXAMPLE, 'package.json'), 'utf8')) as Readonly<
  Record<'scripts' | 'dependencies', Readonly<Record<string, string>>>
>;

let directory = '';
let filename = '';

before(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-example-'));
  const packed = packInto(directory);
  filename = packed.filename;
  installInto(directory, packed);
  addExample(directory);
  compile(directory, join(ROOT, 'node_modules/typescript'));
});

after(() => rmSync(directory, { recursive: true }));

test('the example depends on the package alone', () => {
  assert.deepEqual(dependencies, { 'gatehouse-http': `file:${filename}` });
});

test('the tests of the example pass', () => {
  const [, words = ''] = /^tsc && node (.*)$/.exec(scripts.test ?? '') ?? [];
  // Without the variables of this test run and of its coverage.
  const { NODE_TEST_CONTEXT: _, NODE_V8_COVERAGE: __, ...env } = process.env;
  execFileSync(process.execPath, words.split(' '), { cwd: directory, env, stdio: 'pipe' });
});

test('a separate handler function of docs/your-own-api.md compiles beside the schemas of the example', () => {
  const [lines = ''] = samplesUnder('docs/your-own-api.md', 'Separate handler functions', 'ts');
  writeFileSync(join(directory, 'src/alone.ts'), lines);
  compile(directory, join(ROOT, 'node_modules/typescript'));
  // A pattern that lacks the parameter which the handler needs.
  const wrong = lines.replace("patch('/api/orders/{id}'", "patch('/api/orders'");
  writeFileSync(join(directory, 'src/alone.ts'), wrong);
  assert.throws(() => compile(directory, join(ROOT, 'node_modules/typescript')), /src\/alone\.ts/);
  rmSync(join(directory, 'src/alone.ts'));
});

/** `npm run evidence servers` compiles those of the other pages. */
const PAGES = ['settings', 'your-own-api', 'routes-reference', 'several-issuers', 'for-mcp-and-agents'];

const ROUTES = `import { authenticated, get } from 'gatehouse-http';
export const routes = [get('/api/orders/{id}', authenticated, ({ parameters }) => parameters)];
`;

/** What the programs use of it. */
const PG = `declare namespace pg {
  class Pool {
    constructor(options: { readonly connectionString: string | undefined });
    query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: any[] }>;
    end(): Promise<void>;
  }
}
export default pg;
`;

const LINES = `async function* lines() {
  yield new TextEncoder().encode('id');
}
export const response = new Response(lines());
`;

test('the example compiles a Response whose body is a generator', () => {
  writeFileSync(join(directory, 'src/lines.ts'), LINES);
  try {
    compile(directory, join(ROOT, 'node_modules/typescript'));
  } finally {
    rmSync(join(directory, 'src/lines.ts'));
  }
});

test('each program of the documents that needs nothing but the package and pg compiles', () => {
  const all = PAGES.flatMap((page) => [...read(`docs/${page}.md`).matchAll(/^```ts\n([^]*?)^```$/gm)]);
  const programs = all
    .map(([, lines = '']) => lines)
    .filter((lines) => lines.includes("from 'gatehouse-http") && !/from '\.\/(?:orders|schemas)/.test(lines));
  assert.ok(programs.length >= 6);
  const names = programs.map((_, index) => `src/program-${index}.ts`);
  mkdirSync(join(directory, 'node_modules/pg'));
  const written = {
    'node_modules/pg/package.json': '{ "type": "module", "types": "index.d.ts" }',
    'node_modules/pg/index.d.ts': PG,
    'src/routes.mts': ROUTES,
    ...Object.fromEntries(names.map((name, index) => [name, programs[index]!])),
  };
  for (const [name, lines] of Object.entries(written)) writeFileSync(join(directory, name), lines);
  try {
    compile(directory, join(ROOT, 'node_modules/typescript'));
  } finally {
    for (const name of Object.keys(written)) rmSync(join(directory, name));
  }
});

test('the example serves its routes until a signal ends it', async () => {
  const [, file = ''] = /^node (.*)$/.exec(scripts.start ?? '') ?? [];
  const env = { IDP_DOMAIN: '127.0.0.1:1', IDP_AUDIENCE: 'orders', HOST: '127.0.0.1', PORT: '0' };
  const child = spawn(process.execPath, [file], {
    cwd: directory,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  for await (const line of createInterface(child.stdout)) {
    const { message, port } = JSON.parse(line) as { message: string; port: number };
    if (message !== 'listening') continue;

    const { status } = await fetch(`http://127.0.0.1:${port}/api/orders`);
    assert.equal(status, 401);
    const probing = { cwd: directory, env: { ...env, PORT: String(port) }, encoding: 'utf8' } as const;
    // It has no provider to get keys from.
    const { stdout } = spawnSync(process.execPath, [file, '--probe'], probing);
    // First: an assertion that fails must not leave the process behind.
    child.kill('SIGTERM');
    assert.ok(stdout.startsWith(`http://127.0.0.1:${port}/readyz: 503`), stdout);
  }
  assert.deepEqual(await ended, [0, null]);
});

test('the Dockerfile of the example copies only files that exist, runs and probes with its start script, and uses a numeric user other than root', () => {
  const lines = readFileSync(join(EXAMPLE, 'Dockerfile'), 'utf8').split('\n');
  const copied = lines.flatMap((line) => /^COPY (?!--from)(.*) \S+$/.exec(line)?.[1]?.split(' ') ?? []);
  const own = copied.filter((name) => name !== '*.tgz');
  assert.deepEqual(
    own.filter((name) => !existsSync(join(EXAMPLE, name))),
    [],
  );

  const wordsOf = (name: string): readonly string[] =>
    JSON.parse(lines.find((line) => line.startsWith(`${name} `))?.slice(name.length) ?? '[]');

  assert.equal([...wordsOf('ENTRYPOINT'), ...wordsOf('CMD')].join(' '), scripts.start);
  const health = lines.find((line) => line.startsWith('HEALTHCHECK ')) ?? '';
  assert.equal(JSON.parse(health.split(' CMD ')[1] ?? '').join(' '), `${scripts.start} --probe`);
  const users = lines.filter((line) => line.startsWith('USER '));
  assert.match(users.join(), /^USER [1-9]\d*:[1-9]\d*$/);
});
