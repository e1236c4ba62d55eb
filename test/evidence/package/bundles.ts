/* Makes one file of a program and the package, with each bundler as docs/your-own-api.md says, and runs it. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { samplesUnder } from '../../docs/pages.ts';

const PAGE = 'docs/your-own-api.md';

/** The command of the page, and without its banner. */
const [banner = ''] = samplesUnder(PAGE, 'In one file', 'sh');

const bare = banner.replace(/ \\\n {2}--banner.*/, '');

interface Bundler {
  readonly name: string;
  /** Bundles `orders.mjs` into `dist/orders.mjs`. */
  readonly command: string;
  /** The file needs the package beside it. */
  readonly isExternal?: boolean;
  /** What the file says when it cannot run. */
  readonly fault?: string;
}

const BUNDLERS: readonly Bundler[] = [
  { name: 'esbuild without a flag', command: bare, fault: 'Dynamic require of "node:' },
  { name: 'esbuild, external', command: `${bare.trim()} --external:gatehouse-http`, isExternal: true },
  { name: 'esbuild, with the banner', command: banner },
  { name: 'esbuild, with the banner, minified', command: `${banner.trim()} --minify` },
  {
    name: 'esbuild, CommonJS',
    command: bare.replace('esm', 'cjs').replace('dist/orders.mjs', 'dist/orders.cjs'),
  },
  {
    name: 'Rolldown',
    command: 'npx rolldown orders.mjs --platform node --format esm --file dist/orders.mjs',
  },
  { name: 'Bun', command: 'npx bun build orders.mjs --target=node --outfile=dist/orders.mjs' },
];

/** Uses a name that a banner could collide with, and admits and refuses through a gate. */
const GATE = `
import { createRequire } from 'node:module';
import { createGate, needs, scope } from 'gatehouse-http/gate';
import { createTestIssuer } from 'gatehouse-http/testing';
const require = createRequire(import.meta.url);
const issuer = createTestIssuer();
const gate = createGate(issuer.options);
for (const claims of [{ scope: 'read' }, { exp: 1 }, {}]) {
  const rawHeaders = ['Host', 'localhost', 'Authorization', issuer.bearer(claims).authorization];
  const { caller, refusal } = await gate.check({ method: 'GET', url: '/', rawHeaders }, needs(scope('read')));
  process.stdout.write((caller?.subject ?? refusal.status) + ' ');
}
process.stdout.write(require('node:path').sep);
`;

const ENVIRONMENT = {
  PATH: process.env.PATH,
  IDP_DOMAIN: '127.0.0.1:1',
  IDP_AUDIENCE: 'https://api.test',
  HOST: '127.0.0.1',
  PORT: '0',
};

/** Runs a service until it listens, asks it, and ends it. Returns the status, or what it said instead. */
async function askService(cwd: string, file: string): Promise<string> {
  const child = spawn(process.execPath, [file], { cwd, env: ENVIRONMENT, stdio: ['ignore', 'pipe', 'pipe'] });
  const said = child.stderr.toArray();
  try {
    for await (const line of createInterface(child.stdout)) {
      const { message, port } = JSON.parse(line) as { message: string; port: number };
      if (message !== 'listening') continue;

      const response = await fetch(`http://127.0.0.1:${port}/api/orders/1`);
      return `${response.status} ${response.headers.get('www-authenticate')?.split(' ')[0]}`;
    }
    return Buffer.concat(await said).toString();
  } finally {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'close');
  }
}

function bundle(command: string, entry: string, directory: string, tools: string): void {
  const words = command.replace('npx ', '').replaceAll('orders.', `${entry}.`);
  const env = { ...process.env, PATH: `${join(tools, '.bin')}:${process.env.PATH}` };
  const { status, stderr } = spawnSync('sh', ['-c', words], { cwd: directory, env, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
}

/** Bundles programs of a project that has the package, with these tools, and runs each file. */
export async function useInOneFile(directory: string, tools: string): Promise<void> {
  const [orders = ''] = samplesUnder(PAGE, 'Your own API', 'ts');
  writeFileSync(join(directory, 'orders.mjs'), orders);
  writeFileSync(join(directory, 'gate.mjs'), GATE);

  for (const { name, command, isExternal = false, fault } of BUNDLERS) {
    const ending = /--outfile=dist\/orders(\.\w+)/.exec(command)?.[1] ?? '.mjs';
    const alone = mkdtempSync(join(tmpdir(), 'gatehouse-bundle-'));
    try {
      const entries = ending === '.cjs' ? ['orders'] : ['orders', 'gate'];
      for (const entry of entries) {
        bundle(command, entry, directory, tools);
        copyFileSync(join(directory, `dist/${entry}${ending}`), join(alone, `${entry}${ending}`));
      }
      // The file must do without the project, unless it leaves the package out.
      const cwd = isExternal ? join(directory, 'dist') : alone;
      const response = await askService(cwd, `orders${ending}`);
      if (fault !== undefined) {
        assert.ok(response.includes(fault), response);
        console.log(`${name}: ${fault}, as ${PAGE} says`);
        continue;
      }

      assert.match(response, /^401 /);
      if (entries.includes('gate')) {
        const { stdout, stderr } = spawnSync(process.execPath, [`gate${ending}`], { cwd, encoding: 'utf8' });
        assert.equal(stdout, 'test-user 401 403 /', stderr);
      }
      console.log(`${name}: one file serves, admits and refuses`);
    } finally {
      rmSync(alone, { recursive: true });
    }
  }
}
