/* The package as another project gets it: what the tarball holds, what can be imported, and the first example
   of docs/your-own-api.md in an empty folder. */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, posix } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { anchorsOf, linksIn, samplesUnder } from '../docs/pages.ts';
import { startProvider } from '../idp/provider.ts';
import {
  addNodeTypes,
  compile,
  EXPORTED,
  EXPORTED_ALONE,
  installInto,
  npm,
  packInto,
  ROOT,
  straysOf,
  type Packed,
} from '../support/packed.ts';

/** All that can be imported from `gatehouse-http` and `gatehouse-http/testing`. */
const NAMES = [
  'ConfigurationError',
  'anyScope',
  'authenticated',
  'bytes',
  'claimCheck',
  'claimEquals',
  'claimIncludes',
  'createGate',
  'createService',
  'created',
  'del',
  'fail',
  'get',
  'json',
  'loadSettings',
  'mount',
  'needs',
  'noContent',
  'open',
  'optional',
  'patch',
  'post',
  'put',
  'query',
  'recentLogin',
  'reply',
  'runForwardAuth',
  'runService',
  'scope',
  'under',
  'upstream',
];

/** Of the guards, and of the description of routes. */
const FURTHER_NAMES = {
  decisions: ['actor', 'actorOf', 'claims', 'decision', 'notDelegated'],
  openapi: ['openApi'],
};

const TESTING_NAMES = [
  'RouteMatrixError',
  'assertRouteMatrix',
  'createProof',
  'createProofKey',
  'createTestIssuer',
];

let directory = '';
let packed: Packed;

/** The routes of the first example, in a file of their own as the page says. */
function routesOfExample(): string {
  const [example = ''] = samplesUnder('docs/your-own-api.md', 'Your own API', 'ts');
  return example.replace('runService({\n  routes: [', 'export const routes = [').replace('],\n});', '];');
}

const node = (...words: readonly string[]) =>
  execFileSync(process.execPath, words, { cwd: directory, encoding: 'utf8' }).trim();

before(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-package-'));
  packed = packInto(directory);
  installInto(directory, packed);
});

after(() => rmSync(directory, { recursive: true }));

test('every relative link of a page in the tarball, and each picture, leads to a file and a heading in it', () => {
  const pages = packed.files.filter((name) => name.endsWith('.md'));
  assert.ok(pages.length > 15);
  const dead = pages.flatMap((page) =>
    linksIn(page)
      .filter((link) => !/^[a-z]+:/.test(link))
      .filter((link) => {
        const [file = '', heading] = link.split('#');
        const target = file === '' ? page : posix.join(posix.dirname(page), file);
        if (!packed.files.includes(target)) return true;

        return heading !== undefined && target.endsWith('.md') && !anchorsOf(target).includes(heading);
      }),
  );
  assert.deepEqual(dead, []);
});

test('the tarball holds what was built, and what a reader of a package looks for', () => {
  assert.deepEqual(straysOf(packed), []);
  for (const path of ['dist/package.json', 'dist/gatehouse.js', 'dist/testing.d.ts', 'docs/dpop.md']) {
    assert.ok(packed.files.includes(path), path);
  }
});

test('the package loads neither settings nor what runs a process until they are asked for', () => {
  const script = `
    const { createGate, createService } = require('gatehouse-http');
    const loaded = Object.keys(require.cache).map((path) => path.replace(/.*\\/dist\\//, ''));
    console.log(loaded.filter((path) => /^(?:settings|process|options)\\//.test(path)).join());`;
  const loaded = execFileSync(process.execPath, ['-e', script], { cwd: directory, encoding: 'utf8' });
  assert.equal(loaded, 'settings/configuration-error.js,process/doors.js\n');
});

test('the tarball, of which half are pictures, is no larger than 640 kB', (t) => {
  t.diagnostic(`${packed.size / 1000} kB`);
  assert.ok(packed.size <= 640_000, `${packed.size} bytes`);
});

test('no declaration names a type that TypeScript 5.4 does not have', () => {
  const folder = join(directory, 'node_modules/gatehouse-http');
  for (const path of packed.files.filter((name) => name.endsWith('.d.ts'))) {
    // For compilers before 5.7, Node has other types, in which Buffer takes no type argument.
    assert.doesNotMatch(readFileSync(join(folder, path), 'utf8'), /\b(?:Buffer|Uint8Array)</, path);
  }
});

test('routes, services, gates, json() and query() can be exported without annotations from a project that emits declarations', () => {
  addNodeTypes(directory);
  writeFileSync(join(directory, 'exported.ts'), EXPORTED);
  const flags = '--declaration --emitDeclarationOnly --outDir types --strict --target es2022 --types node';
  const compiler = join(ROOT, 'node_modules/typescript');
  for (const resolution of ['--module nodenext', '--module esnext --moduleResolution bundler']) {
    compile(directory, compiler, ...`${flags} ${resolution}`.split(' '), 'exported.ts');
  }
  const made = readFileSync(join(directory, 'types/exported.d.ts'), 'utf8');
  assert.match(made, /^export declare const routes: (?:import\("gatehouse-http"\)\.)?Route\[\];$/m);
  assert.doesNotMatch(made, /dist\/|(?<!")\bany\b/);

  for (const text of EXPORTED_ALONE) {
    writeFileSync(join(directory, 'exported.ts'), text);
    compile(directory, compiler, ...`${flags} --module nodenext`.split(' '), 'exported.ts');
  }
});

test('each path has its types in a project with @types/node that names no types, as TypeScript 6 and newer expect', () => {
  const manifest = readFileSync(join(directory, 'node_modules/gatehouse-http/package.json'), 'utf8');
  const { exports } = JSON.parse(manifest) as { exports: Record<string, object> };
  const compiler = join(ROOT, 'node_modules/typescript');
  const compilerOptions = {
    noEmit: true,
    strict: true,
    module: 'nodenext',
    target: 'es2022',
    lib: ['es2022'],
  };
  // A program for each, in one build that reads what they share once.
  const references = Object.keys(exports).map((path, index) => {
    const folder = join(directory, 'unnamed', String(index));
    mkdirSync(folder, { recursive: true });
    const name = join('gatehouse-http', path);
    writeFileSync(join(folder, 'unnamed.ts'), `import * as all from '${name}';\nvoid all;\n`);
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['unnamed.ts'] }));
    return { path: `./${index}` };
  });
  writeFileSync(join(directory, 'unnamed/tsconfig.json'), JSON.stringify({ files: [], references }));
  compile(directory, compiler, '--build', 'unnamed');

  const flags = '--noEmit --strict --module nodenext --target es2022 --lib es2022'.split(' ');
  const wrong = `import { createGate, mount, open } from 'gatehouse-http';
import { cors } from 'gatehouse-http/cors';
import { jsonLog } from 'gatehouse-http/log';
// @ts-expect-error
mount('/a', open, () => 5);
// @ts-expect-error: a part of another option
createGate({ domain: 'a', audience: 'b', cors: jsonLog() });
createGate({ domain: 'a', audience: 'b', cors: cors({ origins: ['https://a'] }), log: jsonLog() });
`;
  writeFileSync(join(directory, 'unnamed.ts'), wrong);
  compile(directory, compiler, ...flags, '--skipLibCheck', 'unnamed.ts');
});

test('the sample for any other server in docs/in-front-of-your-server.md compiles with strict types and without, as in a new Next.js project', () => {
  const [lines = ''] = samplesUnder('docs/in-front-of-your-server.md', 'Any other server', 'ts');
  const opening = `import { needs, scope, type Gate } from 'gatehouse-http/gate';\ndeclare const gate: Gate;\n`;
  writeFileSync(join(directory, 'fetch.ts'), `${opening}export ${lines}`);
  const compiler = join(ROOT, 'node_modules/typescript');
  const flags = '--noEmit --module nodenext --target es2022 --types node --strict'.split(' ');
  for (const strict of ['true', 'false']) compile(directory, compiler, ...flags, strict, 'fetch.ts');
});

test('nothing in package.json is changed or dropped when it is published', () => {
  const text = readFileSync(join(ROOT, 'package.json'), 'utf8');
  const folder = join(directory, 'published');
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), text);
  npm(folder, 'pkg', 'fix');
  assert.equal(readFileSync(join(folder, 'package.json'), 'utf8'), text);
});

test('import and require get the same names from one copy', () => {
  const program = `
    import * as imported from 'gatehouse-http';
    import { createRequire } from 'node:module';
    const required = createRequire(import.meta.url)('gatehouse-http');
    const names = (one) => Object.keys(one).filter((name) => !['default', 'module.exports', '__esModule'].includes(name)).sort();
    console.log(JSON.stringify([names(imported), names(required), imported.get === required.get]));`;
  const [imported, required, isOne] = JSON.parse(node('--input-type=module', '--eval', program));
  assert.deepEqual([imported, required, isOne], [NAMES, NAMES, true]);
});

test('the entry points of guards and of OpenAPI export their names', () => {
  for (const [path, names] of Object.entries(FURTHER_NAMES)) {
    const list = `console.log(JSON.stringify(Object.keys(require('gatehouse-http/${path}')).sort()))`;
    assert.deepEqual(JSON.parse(node('--eval', list)), names);
  }
});

test('gatehouse-http/testing exports its names, and no inner file can be imported', () => {
  const names = `import('gatehouse-http/testing').then((all) => console.log(JSON.stringify(Object.keys(all).sort())))`;
  const found: string[] = JSON.parse(node('--eval', names));
  assert.deepEqual(
    found.filter((name) => !['default', 'module.exports', '__esModule'].includes(name)),
    TESTING_NAMES,
  );
  const inside = `import('gatehouse-http/dist/verify/token/verify.js').catch(({ code }) => console.log(code))`;
  assert.equal(node('--eval', inside), 'ERR_PACKAGE_PATH_NOT_EXPORTED');
});

test('the first example of docs/your-own-api.md answers as it says', async (t) => {
  const [example = ''] = samplesUnder('docs/your-own-api.md', 'Your own API', 'ts');
  writeFileSync(join(directory, 'orders.mjs'), example);
  const { PATH } = process.env;
  const env = {
    PATH,
    IDP_DOMAIN: '127.0.0.1:1',
    IDP_AUDIENCE: 'https://api.test',
    HOST: '127.0.0.1',
    PORT: '0',
  };
  const child = spawn(process.execPath, ['orders.mjs'], {
    cwd: directory,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(async () => {
    child.kill('SIGKILL');
    await once(child, 'close');
  });
  let port = 0;
  for await (const line of createInterface(child.stdout)) {
    const entry = JSON.parse(line) as { message: string; port: number; profile: string };
    if (entry.message !== 'listening') continue;
    assert.equal(entry.profile, 'own table');
    port = entry.port;
    break;
  }
  const url = `http://127.0.0.1:${port}/api/orders`;
  const refused = await fetch(`${url}/1`);
  assert.equal(refused.status, 401);
  const { status, headers } = await fetch(url);
  assert.deepEqual([status, headers.get('allow')], [405, 'POST']);
});

test('the tests of docs/your-own-api.md pass for the routes of its first example', () => {
  const [tests = ''] = samplesUnder('docs/your-own-api.md', 'Tests of your routes', 'ts');
  writeFileSync(join(directory, 'routes.mjs'), routesOfExample());
  writeFileSync(join(directory, 'routes.test.mjs'), tests);
  // Without the variables of this test run and of its coverage.
  const { NODE_TEST_CONTEXT: _, NODE_V8_COVERAGE: __, ...env } = process.env;
  const flags = ['--test', '--test-reporter=spec', 'routes.test.mjs'];
  const said = execFileSync(process.execPath, flags, { cwd: directory, env, encoding: 'utf8' });
  assert.match(said, /pass 2\n/);
});

test('the service of docs/your-own-api.md starts and ends in another program', () => {
  const [lines = ''] = samplesUnder('docs/your-own-api.md', 'In another program', 'ts');
  writeFileSync(join(directory, 'routes.mjs'), routesOfExample());
  writeFileSync(join(directory, 'own.mjs'), `${lines}process.stderr.write(url);`);
  const { status, stderr } = spawnSync(process.execPath, ['own.mjs'], { cwd: directory, encoding: 'utf8' });
  assert.deepEqual([status, stderr.replace(/\d+$/, '0')], [0, 'http://localhost:0']);
});

test('the test gate of docs/in-front-of-your-server.md admits and refuses as the page says', () => {
  const [lines = ''] = samplesUnder('docs/in-front-of-your-server.md', 'Tests', 'ts');
  const asking = `
    import { needs, scope } from 'gatehouse-http';
    for (const { authorization } of [headers, issuer.bearer({ exp: 1 }), issuer.bearer()]) {
      const request = { method: 'GET', url: '/', rawHeaders: ['Host', 'localhost', 'Authorization', authorization] };
      const { caller, refusal } = await gate.check(request, needs(scope('read:orders')));
      process.stderr.write((caller?.subject ?? refusal.status) + ' ');
    }`;
  writeFileSync(join(directory, 'gate.mjs'), lines + asking);
  const { status, stderr } = spawnSync(process.execPath, ['gate.mjs'], { cwd: directory, encoding: 'utf8' });
  assert.deepEqual([status, stderr], [0, 'test-user 401 403 ']);
});

test('the service of docs/several-issuers.md accepts the tokens of both issuers, each by its own keys', () => {
  const [lines = ''] = samplesUnder('docs/several-issuers.md', 'Tests', 'ts');
  const before = `
    import { createService } from 'gatehouse-http';
    import { createTestIssuer } from 'gatehouse-http/testing';
    import { routes } from './routes.mjs';\n`;
  const asking = `
    const service = createService({ routes }, { ...options, port: 0 });
    const url = await service.listen();
    for (const issuer of [staff, partner]) {
      const { status } = await fetch(url + '/api/orders/1', { headers: issuer.bearer({ scope: 'read:orders' }) });
      process.stderr.write(status + ' ');
    }
    await service.stop();`;
  writeFileSync(join(directory, 'routes.mjs'), routesOfExample());
  writeFileSync(
    join(directory, 'issuers.mjs'),
    before + lines.replaceAll(/: (?:unknown|string)/g, '') + asking,
  );
  const { status, stderr } = spawnSync(process.execPath, ['issuers.mjs'], {
    cwd: directory,
    encoding: 'utf8',
  });
  assert.deepEqual([status, stderr], [0, '200 200 ']);
});

test('npx --no-install gatehouse-http --check reports the keys of the service, or why it would not run', async (t) => {
  const provider = await startProvider();
  t.after(() => provider.stop());

  const check = async (environment: Record<string, string>) => {
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: provider.authorityFile, ...environment };
    const child = spawn('npx', ['--no-install', 'gatehouse-http', '--check'], {
      cwd: directory,
      env,
      stdio: 'pipe',
    });
    const pieces = await Promise.all([child.stdout, child.stderr].map((stream) => stream.toArray()));
    return [child.exitCode ?? (await once(child, 'close'))[0], ...pieces.map((piece) => piece.join(''))];
  };

  const [code, output] = await check({
    IDP_DOMAIN: provider.domain,
    IDP_AUDIENCE: provider.audience,
  });
  assert.equal(code, 0);
  assert.ok(output.includes(provider.signingKey.kid));
  const refused = await check({ IDP_DOMAIN: 'https://idp.test', IDP_AUDIENCE: 'x' });
  assert.equal(refused[0], 1);
  assert.match(refused[2], /^configuration: IDP_DOMAIN /m);
});

test('invalid routes end the process with every problem before it listens', () => {
  const program = `
    import { get, open, runService } from 'gatehouse-http';
    runService({ routes: [get('/a/{x}', open, () => ({})), get('/{y}/b', open, () => ({})), get('c', open, () => ({}))] });`;
  writeFileSync(join(directory, 'wrong.mjs'), program);
  const env = { PATH: process.env.PATH, IDP_DOMAIN: 'idp.test', IDP_AUDIENCE: 'api' };
  assert.throws(
    () => execFileSync(process.execPath, ['wrong.mjs'], { cwd: directory, env, stdio: 'pipe' }),
    ({ status, stderr }) => {
      const lines = String(stderr).trim().split('\n').sort();
      assert.deepEqual(lines, [
        'configuration: GET /a/{x} and /{y}/b: both match /a/b, and neither is more specific; give one of them another path',
        'configuration: GET c: is not a path pattern; write /c',
      ]);
      return status === 1;
    },
  );
});

test('an invalid guard ends the process with a stack that names its line, before it listens', () => {
  const program = `import { get, needs, runService, scope } from 'gatehouse-http';
runService({ routes: [
  get('/a', needs(scope('read')), () => ({})),
  get('/b', needs(scope('read write')), () => ({})),
] });`;
  writeFileSync(join(directory, 'guard.mjs'), program);
  const env = { PATH: process.env.PATH, IDP_DOMAIN: 'idp.test', IDP_AUDIENCE: 'api' };
  assert.throws(
    () => execFileSync(process.execPath, ['guard.mjs'], { cwd: directory, env, stdio: 'pipe' }),
    ({ status, stderr }) => {
      assert.match(String(stderr), /^TypeError: scope read write: needs scopes, each as its own argument$/m);
      assert.match(String(stderr), /^ +at .*guard\.mjs:4:\d+$/m);
      return status === 1;
    },
  );
});
