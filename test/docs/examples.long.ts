/* The route of a fork in docs/profiles.md, added as the page says, works. */
import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startProvider, type Provider } from '../idp/provider.ts';
import { ask } from '../support/client.ts';
import { providerSettings } from '../support/process.ts';
import { samplesUnder } from './pages.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PAGE = 'docs/profiles.md';
const [route = '', handler = ''] = samplesUnder(PAGE, 'Your own route', 'ts');
const [line = ''] = samplesUnder(PAGE, 'Your own route', 'sh');

let provider: Provider;
let directory = '';
const children: ChildProcess[] = [];

const profile = () => join(directory, 'src/profiles/b.ts');

/** Compiles the copy and returns the compiler's messages. */
const compile = (...options: string[]) =>
  promisify(execFile)(join(ROOT, 'node_modules/.bin/tsc'), ['-p', directory, ...options]).then(
    () => '',
    ({ stdout }) => String(stdout),
  );

/** Starts a file of the copy and resolves with its port. */
async function start(file: string): Promise<number> {
  const { PATH } = process.env;
  const env = {
    PATH,
    ...providerSettings(provider),
    NODE_EXTRA_CA_CERTS: provider.authorityFile,
    PORT: '0',
    HOST: '127.0.0.1',
  };
  const child = spawn(process.execPath, [file], {
    cwd: directory,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  for await (const line of createInterface(child.stdout)) {
    const { message, port } = JSON.parse(line) as { message: string; port: number };
    if (message === 'listening') return port;
  }
  throw new Error(`${file} has ended`);
}

before(async () => {
  provider = await startProvider();
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-'));
  for (const name of ['src', 'package.json', 'tsconfig.json', 'tsconfig.dist.json']) {
    cpSync(join(ROOT, name), join(directory, name), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
  const before = readFileSync(profile(), 'utf8');
  const last = before.match(/^ +get\('.*\n/gm)?.at(-1) ?? assert.fail('no route');
  const isDone = before.includes("'/api/invoices'");
  if (!isDone) writeFileSync(profile(), before.replace(last, last + route) + handler);
  assert.equal(await compile(), '');
});

after(async () => {
  for (const child of children) {
    if (child.kill('SIGKILL')) await once(child, 'close');
  }
  rmSync(directory, { recursive: true });
  await provider.stop();
});

test('a route of your own responds as docs/profiles.md says', async () => {
  const port = await start('dist/server.js');
  const [, path = ''] = /localhost:3001(\S+)/.exec(line) ?? [];

  const statusFor = async (claims: Record<string, unknown>) =>
    (await ask(port, path, { token: provider.issue(claims) })).status;

  const { status, body } = await ask(port, path, {
    token: provider.issue({ scope: 'read:invoices', tenant: 'acme' }),
  });
  assert.deepEqual(
    [status, body.invoices, Object.keys(body)],
    [200, [{ id: 1, owner: 'auth0|user' }], ['invoices', 'timestamp']],
  );
  assert.deepEqual(
    [await statusFor({ scope: 'read:invoices' }), await statusFor({ tenant: 'acme' })],
    [403, 403],
  );
  assert.equal((await ask(port, path)).status, 401);
});
