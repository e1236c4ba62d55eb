/* A fork: adding routes to a copy leaves every test green with no other edit (docs/profiles.md). */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { samplesUnder } from './docs/pages.ts';
import { importsOf } from './support/imports.ts';
import { filesBelow } from './support/tree.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

const [documentedRoute = '', documentedHandler = ''] = samplesUnder(
  'docs/profiles.md',
  'Your own route',
  'ts',
);

const ROUTES = `${documentedRoute}
  get('/api/reports/{year}', needs(anyScope('read:reports', 'admin'), claimEquals('employee', true)), readReport),
`;
const HANDLERS = `${documentedHandler}
function readReport({ parameters }: RouteRequest<Caller>): object {
  return parameters.year === '2030' ? { year: 2030 } : fail(404, 'not_found', 'There is no such report');
}
`;
const NEW_FILE = `// The routes of another team, beside the profiles.
import { fail, noContent } from '../service/routes/handler-reply.ts';
import { authenticated, needs, open, optional } from '../gate/rules/access.ts';
import { claimCheck, claimIncludes, scope } from '../gate/rules/guards.ts';
import { recentLogin } from '../gate/rules/recent-login.ts';
import { del, get, post, put, under, type Routes } from '../service/routes/route.ts';
import { json } from '../service/routes/inputs.ts';

const TEAMS = new Map([['blue', 7]]);

const inTeam = claimCheck('the team is known here', (claim) => TEAMS.has(String(claim('team'))));
const isGrown = claimCheck('age is at least 18', (claim) => Number(claim('age')) >= 18);
const buys = claimIncludes('groups', ['buyers']);
const enters = claimIncludes('groups', ['cellar']);

export const orders: Routes = {
  rules: [under('/orders/all', needs(scope('orders:all')))],
  routes: [
    get('/orders', open, () => ({ orders: [] })),
    post('/orders', needs(scope('write:orders')), json(), ({ body }) => ({ body })),
    get('/orders/{id}/lines/{line}', optional, ({ parameters }) => ({ ...parameters })),
    put('/orders/{id}/lines/{line}', authenticated, () => noContent()),
    del('/orders/all/{year}', needs(inTeam), () => noContent()),
    del('/orders/{id}', needs(recentLogin({ acr: ['mfa', 'phr'], maxAgeSeconds: 300 }), scope('write:orders')), () => noContent()),
    put('/orders/all', needs(scope('write:orders')), () => noContent()),
    put('/orders/{id}', needs(recentLogin({ maxAgeSeconds: 0 })), () => noContent()),
    get('/teams', needs(inTeam, scope('read:teams')), () => ({ teams: [...TEAMS.keys()] })),
    get('/wines', needs(buys, enters, isGrown), () => fail(503, 'later', 'Come back later')),
  ],
};
`;

/** The files in git, in their current state, with the packages of this tree. */
function copyTree(directory: string): void {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  for (const name of listed.trim().split('\n')) cpSync(join(ROOT, name), join(directory, name));
  symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
}

function addRoutes(directory: string): void {
  const file = join(directory, 'src/profiles/b.ts');
  const text = readFileSync(file, 'utf8');
  const last = text.match(/^ +get\('.*\n/gm)?.at(-1) ?? assert.fail('no route');
  const withRoutes = text.replace(last, last + ROUTES) + HANDLERS;
  const imports = withRoutes
    .replace('import { claimCheck,', 'import { anyScope, claimCheck,')
    .replace(/^import /m, "import { fail } from '../service/routes/handler-reply.ts';\nimport ");
  writeFileSync(file, imports);
  writeFileSync(join(directory, 'src/profiles/orders.ts'), NEW_FILE);
}

/** Tests that read none of a profile's source: a fork's routes change them only if they load one. */
const INNER = /^(?:evidence|gate|options|process|service|settings|vectors|verify)\/|\/.*\.wire\.test\.ts$/;

/** Whether it, or a module of the tests that it loads, names a profile. Tests of `--check` bring routes. */
function usesProfile(file: string): boolean {
  const text = readFileSync(file, 'utf8');
  if (/\bprofiles\/(?!settings)\w+\.ts\b/.test(text)) return true;

  const own = importsOf(text).filter(({ from }) => from.startsWith('.') && !from.includes('/src/'));
  return own.some(({ from }) => usesProfile(join(dirname(file), from)));
}

/** The test files that a fork runs: all but those. */
const outerTests = () =>
  filesBelow(join(ROOT, 'test')).filter((name) => {
    const isTest = name.endsWith('.test.ts');
    return isTest && (!INNER.test(name) || usesProfile(join(ROOT, 'test', name)));
  });

test('adding routes to a profile or in a new file leaves npm test green with no other edit', (context) => {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-fork-'));
  context.after(() => rmSync(directory, { recursive: true }));
  copyTree(directory);
  addRoutes(directory);
  // Variables of this run and its coverage.
  const { NODE_TEST_CONTEXT: _, NODE_V8_COVERAGE: __, ...env } = process.env;
  const { status, stdout, stderr } = spawnSync('npm', ['test', ...outerTests()], {
    cwd: directory,
    env,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  });
  const [, failures = stdout.slice(-5000)] = stdout.split('failing tests:');
  assert.equal(status, 0, failures + stderr);
  for (const route of ['GET /api/invoices', 'GET /api/reports/{year}', 'POST /orders', 'GET /wines']) {
    assert.ok(stdout.includes(`▶ ${route}\n`), `no test of ${route}`);
  }
});
