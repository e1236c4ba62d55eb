/* The policy of docs/forward-auth.md as a process, in a folder that holds what the image holds. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startProvider, type Provider } from '../idp/provider.ts';
import { DOWN, providerSettings, runProcess } from '../support/process.ts';
import { sampleUnder } from './forward-auth-proxies.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const POLICY = sampleUnder('Quick start', 'js');

let directory = '';
let provider: Provider;

before(async () => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-policy-'));
  symlinkSync(join(ROOT, 'dist'), join(directory, 'dist'));
  cpSync(join(ROOT, 'package.json'), join(directory, 'package.json'));
  writeFileSync(join(directory, 'policy.mjs'), POLICY);
  provider = await startProvider();
});

after(async () => {
  await provider.stop();
  rmSync(directory, { recursive: true });
});

const asking = (method: string, uri: string) => ({ 'X-Forwarded-Method': method, 'X-Forwarded-Uri': uri });

const program = () => [process.execPath, join(directory, 'policy.mjs')];

/** What it says, run with these words and settings until it ends by itself. */
function run(file: string, words: readonly string[], environment: Readonly<Record<string, string>>) {
  const { PATH = '' } = process.env;
  const env = { PATH, NODE_EXTRA_CA_CERTS: provider.authorityFile, ...environment };
  return spawnSync(process.execPath, [join(directory, file), ...words], {
    env,
    cwd: directory,
    encoding: 'utf8',
  });
}

describe('a policy in a folder laid out like the image', { timeout: 60_000 }, () => {
  test('imports the package by its name, and responds as docs/forward-auth.md says', async (t) => {
    const environment = { ...providerSettings(provider), ACCESS_LOG: 'true' };
    const service = await runProcess(t, { program: program(), environment });
    await service.logged('signing keys loaded');
    assert.equal((await service.ask('/readyz')).status, 200);

    const open = await service.ask('/forward-auth', { headers: asking('GET', '/status') });
    assert.deepEqual([open.status, open.headers['x-auth-subject']], [200, '']);
    const token = provider.issue({ scope: 'read:orders' });
    const orders = await service.ask('/forward-auth', { headers: asking('GET', '/orders/7'), token });
    assert.equal(orders.status, 200);
    assert.notEqual(orders.headers['x-auth-subject'], '');
    const refused = await service.ask('/forward-auth', { headers: asking('GET', '/other'), token });
    assert.deepEqual([refused.status, refused.body.error], [403, 'insufficient_scope']);
    const line = await service.logged('request');
    assert.deepEqual([line.method, line.route, line.status], ['GET', '/status', 200]);

    service.child.kill('SIGTERM');
    assert.equal(await service.exited, 0);
  });

  test('exits with 1 on --probe without a port to ask, and while the service is not ready', async (t) => {
    const environment = { ...DOWN, PORT: '0' };
    assert.equal(run('policy.mjs', ['--probe'], environment).status, 1);
    const service = await runProcess(t, { program: program() });
    assert.equal(run('policy.mjs', ['--probe'], { ...DOWN, PORT: String(service.port) }).status, 1);
  });

  test('a policy with a handler does not start, nor does a service with upstream, and each problem names its route', () => {
    writeFileSync(join(directory, 'wrong.mjs'), POLICY.replace('open, upstream', 'open, () => ({})'));
    writeFileSync(join(directory, 'service.mjs'), POLICY.replaceAll('runForwardAuth', 'runService'));
    const policy = run('wrong.mjs', [], DOWN);
    assert.equal(policy.status, 1);
    assert.match(policy.stderr, /^configuration: GET \/status: a route of runForwardAuth takes upstream/m);
    const service = run('service.mjs', [], DOWN);
    assert.equal(service.status, 1);
    assert.equal(service.stderr.match(/^configuration: .+ no other route takes upstream$/gm)?.length, 3);
  });
});
