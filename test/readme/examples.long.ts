/* The README's examples, done as it says: a route of one's own, what does not compile, and the parts in another server. */
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
import { providerSettings } from '../support/service.ts';
import { README } from './tables.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** The code blocks of a language under a heading. */
function blocksUnder(heading: string, language: string): string[] {
  const [, body = ''] = README.split(`\n## ${heading}\n`);
  const section = body.split('\n## ')[0] ?? '';
  return [...section.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'gm'))].map(
    ([, block = '']) => block,
  );
}
const [row = '', handler = '', refusedLines = ''] = blocksUnder('A route of your own', 'ts');
const [parts = '', listener = ''] = blocksUnder('The parts in a server that you already have', 'js');

let provider: Provider;
let directory = '';
const children: ChildProcess[] = [];

const table = () => join(directory, 'src/profiles/b.ts');
/** Compiles the copy; gives what the compiler says. */
const compile = (...options: string[]) =>
  promisify(execFile)(join(ROOT, 'node_modules/.bin/tsc'), ['-p', directory, ...options]).then(
    () => '',
    ({ stdout }) => String(stdout),
  );

/** Starts a file of the copy and gives the port on which it listens. */
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
  for (const name of ['src', 'package.json', 'tsconfig.json'])
    cpSync(join(ROOT, name), join(directory, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
  const before = readFileSync(table(), 'utf8');
  const feed = /^ +get\('\/api\/feed'.*\n/m.exec(before)?.[0] ?? assert.fail('no row of the feed');
  writeFileSync(table(), before.replace(feed, feed + row) + handler);
  assert.equal(await compile(), '');
});
after(async () => {
  for (const child of children) if (child.kill('SIGKILL')) await once(child, 'close');
  rmSync(directory, { recursive: true });
  await provider.stop();
});

test('a route of your own answers as the README says', async () => {
  const port = await start('dist/server.js');
  const [, path = ''] = /localhost:3001(\S+)/.exec(blocksUnder('A route of your own', 'sh')[0] ?? '') ?? [];
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

test('none of the rows compiles of which the README says so', async () => {
  const rows = refusedLines.trim().split('\n');
  const good = readFileSync(table(), 'utf8');
  const first = good.split('\n').length;
  writeFileSync(table(), good + rows.join('\n'));
  const places = [...(await compile('--noEmit')).matchAll(/b\.ts\((\d+),\d+\): error/g)].map(([, line]) =>
    Number(line),
  );
  writeFileSync(table(), good);
  assert.ok(rows.length > 3);
  assert.deepEqual(
    [...new Set(places)],
    rows.map((_, index) => first + index),
  );
});

test('the parts work in another server as the README shows them', async () => {
  writeFileSync(join(directory, 'orders.js'), parts);
  const port = await start('orders.js');
  const token = provider.issue({ sub: 'alice' });
  assert.deepEqual((await ask(port, '/orders', { token })).body, { orders: [], owner: 'alice' });
  const refused = await ask(port, '/orders', { token: provider.issue({ aud: 'https://another.test' }) });
  assert.deepEqual([refused.status, refused.body.error], [401, 'invalid_token']);
  const { status, challenges } = await ask(port, '/orders');
  assert.deepEqual([status, challenges], [401, ['Bearer realm="api"']]);
  assert.equal((await ask(port, '/api/private', { token })).body.user, 'alice');
  assert.deepEqual(
    [(await ask(port, '/api/private')).status, (await ask(port, '/nothing')).status],
    [401, 404],
  );
});

test('the listener can be taken in place of createServer as the README shows it', async () => {
  const own = /^const server = createServer[^]*?^server\.maxHeadersCount = 0;\n/m;
  const whole = parts.replace(own, listener.replace(/^import .*\n/gm, ''));
  assert.notEqual(whole, parts);
  writeFileSync(join(directory, 'whole.js'), (/^import .*\n/m.exec(listener)?.[0] ?? '') + whole);
  const port = await start('whole.js');
  assert.equal((await ask(port, '/api/private', { token: provider.issue() })).status, 200);
  assert.equal((await ask(port, '/orders')).status, 404);
});
