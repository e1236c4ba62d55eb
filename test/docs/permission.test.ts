/* The command of docs/deploy.md for Node's permission model, run as the page shows it. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ask } from '../support/client.ts';
import { codeIn, ROOT, under } from './pages.ts';

const BODY = under('docs/deploy.md', 'Permission model');
const [MAJOR = 0, MINOR = 0] = process.versions.node.split('.').map(Number);

/** The command, with the flags for this version of Node from the sentence below it. */
function documented(): string {
  const [, command = assert.fail('no command')] = /^ {4}(node .*)$/m.exec(BODY) ?? [];
  const [, sentence = assert.fail('no flags')] = /^(Before Node .*)$/m.exec(BODY) ?? [];
  const [experimental = '', network] = codeIn(sentence);
  const isOld = MAJOR < 22 || (MAJOR === 22 && MINOR < 13);
  const flag = isOld ? experimental : '--permission';
  return command.replace('--permission', MAJOR < 25 ? flag : `${flag} ${network}`);
}

const YAML = 'idp:\n  domain: 127.0.0.1:1\n  audience: x\nserver:\n  port: 0\n  host: 127.0.0.1\n';

/** Runs a command in a directory with `dist/` and these files, until it listens or has exited. */
async function run(context: TestContext, command: string, files: Readonly<Record<string, string>>, own = {}) {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'gatehouse-')));
  cpSync(fileURLToPath(new URL('dist', ROOT)), join(directory, 'dist'), { recursive: true });
  for (const [name, content] of Object.entries(files)) writeFileSync(join(directory, name), content);
  const program = command.replace(/^node/, `exec '${process.execPath}'`);
  const child = spawn('sh', ['-c', program], { cwd: directory, env: { PATH: process.env.PATH, ...own } });
  const exited = once(child, 'close');
  context.after(async () => {
    child.kill('SIGKILL');
    await exited;
    rmSync(directory, { recursive: true });
  });
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  for await (const line of createInterface(child.stdout)) {
    const { message, port, files: read } = JSON.parse(line);
    if (message === 'listening') return { child, exited, port, read, directory, errors: () => errors };
  }
  const [code] = await exited;
  return { child, exited, code, directory, errors: () => errors };
}

const LISTENS: readonly (readonly [what: string, files: Record<string, string>, read: readonly string[]])[] =
  [
    ['an application.yml alone', { 'application.yml': YAML }, ['application.yml']],
    ['a .env beside it', { '.env': 'LOG_LEVEL=debug', 'application.yml': YAML }, ['.env', 'application.yml']],
  ];

for (const [what, files, read] of LISTENS) {
  test(`the command of docs/deploy.md for the permission model starts the service with ${what}`, async (t) => {
    const service = await run(t, documented(), files);
    assert.deepEqual(
      service.read,
      read.map((name) => join(service.directory, name)),
      service.errors(),
    );
    assert.equal((await ask(service.port, '/healthz')).status, 200);
    service.child.kill('SIGTERM');
    assert.deepEqual(await service.exited, [0, null]);
  });
}

test('a file that the permission model does not grant counts as absent [docs/deploy.md]', async (t) => {
  const command = documented().replace(/ \S+\.env\b/, '');
  const { read, directory } = await run(t, command, { '.env': 'PORT=x', 'application.yml': YAML });
  assert.deepEqual(read, [join(directory, 'application.yml')]);
});

test('a CONFIG_FILE that the permission model does not grant is rejected [docs/deploy.md]', async (t) => {
  const own = { CONFIG_FILE: 'x.yml' };
  const { code, directory, errors } = await run(t, documented(), { 'x.yml': YAML }, own);
  const problem = `CONFIG_FILE (environment): ${directory}/x.yml: cannot be read (ERR_ACCESS_DENIED); `;
  assert.equal(code, 1);
  assert.ok(errors().includes(`configuration: ${problem}`), errors());
});

test('the flags of docs/deploy.md grant no writing, no child processes, no workers and no other files', () => {
  const asked = ["'fs.write'", "'child'", "'worker'", "'fs.read', '/etc/hosts'"];
  const has = asked.map((what) => `process.permission.has(${what})`).join();
  const script = `console.log(JSON.stringify([${has}]))`;
  const command = documented().replace('dist/server.js', `-e "${script}"`);
  const program = command.replace(/^node/, `exec '${process.execPath}' --no-warnings`);
  const output = execFileSync('sh', ['-c', program], { encoding: 'utf8' });
  assert.deepEqual(
    JSON.parse(output),
    asked.map(() => false),
  );
});
