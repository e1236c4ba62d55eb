/* Runs the files of the image as an engine would, but without one: as process 1, as its user, and from a root
   that is read only. Shows the size, the user, the health check, and how signals end it.

   Shows: the image's size, user, health check and signal handling.
   Takes: 7 s.
   Needs: packages, Linux with unprivileged user namespaces. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { samplesUnder } from '../../docs/pages.ts';
import { startProvider } from '../../idp/provider.ts';
import { freePort } from '../../support/free-port.ts';
import { providerSettings, startProcess } from '../../support/process.ts';
import type { Environment } from '../../support/settings.ts';
import {
  contained,
  ENVIRONMENT,
  GROUP,
  HEALTH_CHECK,
  makeRoot,
  missing,
  sizeOf,
  START,
  USER,
} from './root.ts';

/** A program that somebody mounts beside `dist`. */
const PROGRAM = `
import { get, open, runService } from 'gatehouse-http';
await runService({ routes: [
  get('/slow', open, () => new Promise((resolve) => setTimeout(resolve, 300, { isDone: true }))),
] });
`;

/** Prints its own process id, user and privileges, and tries to write. */
const SELF = `
const { readFileSync, writeFileSync } = require('node:fs');
const status = Object.fromEntries(readFileSync('/proc/self/status', 'utf8').trim().split('\\n').map((line) => line.split(/:\\s*/)));
const written = ['/x', '/app/x', '/tmp/x', '/app/dist/server.js'].map((path) => {
  try { writeFileSync(path, ''); return 'written'; } catch ({ code }) { return code; }
});
console.log(JSON.stringify({ pid: process.pid, uid: process.getuid(), gid: process.getgid(), status, written }));
`;

const kilobytes = (bytes: number) => `${Math.round(bytes / 1000)} kB`;

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;

const reason = missing();

if (reason !== undefined) {
  console.error(`evidence image ${reason}`);
  process.exit(1);
}

const root = makeRoot();
const through = contained(root);

/** Runs a program of the image to its end. */
function run(environment: Environment, ...program: readonly string[]) {
  const command = [...through, ...program];
  const started = performance.now();
  const { status, stdout, stderr } = spawnSync(command[0]!, command.slice(1), {
    env: environment,
    encoding: 'utf8',
  });
  return { status, stdout, stderr, millis: Math.round(performance.now() - started) };
}

/** The process that is number 1 inside. */
function firstInside(outside: number): number {
  const children = readFileSync(`/proc/${outside}/task/${outside}/children`, 'utf8').trim().split(' ');
  const inside = Number(children[0]);
  assert.match(readFileSync(`/proc/${inside}/status`, 'utf8'), /^NSpid:\t.*\t1$/m);
  return inside;
}

function showFiles(): void {
  const { files, bytes } = sizeOf(root.home);
  const layer = execFileSync('sh', ['-c', `tar cf - --sort=name -C "$0" . | gzip -9 | wc -c`, root.home]);
  console.log(`/app: ${files} files, ${kilobytes(bytes)}; ${kilobytes(Number(layer))} as a compressed layer`);
  const base = sizeOf(root.folder);
  const { stdout } = run({ ...ENVIRONMENT }, 'node', '--version');
  console.log(
    `Node ${stdout.trim()} with ${root.libraries.length} libraries: ${megabytes(base.bytes - bytes)}; no shell, no npm`,
  );
}

function showUser(): void {
  const { pid, uid, gid, status, written } = JSON.parse(
    run({ ...ENVIRONMENT }, 'node', '--eval', SELF).stdout,
  );
  assert.deepEqual([pid, String(uid), String(gid)], [1, USER, GROUP]);
  assert.deepEqual([Number(`0x${status.CapEff}`), status.NoNewPrivs], [0, '1']);
  assert.deepEqual(written, ['EROFS', 'EROFS', 'EROFS', 'EROFS']);
  console.log(`process ${pid}, user ${uid}:${gid}, no capability, no new privileges; every write is EROFS`);
}

/** Exits with what the health check says of the service with these settings. */
function probe(environment: Environment, expected: number, when: string): void {
  const { status, stderr, millis } = run(environment, ...HEALTH_CHECK);
  assert.equal(status, expected, stderr);
  console.log(`health check, ${when}: exit code ${status} after ${millis} ms`);
}

async function showService(environment: Environment): Promise<void> {
  const started = performance.now();
  const service = await startProcess({ environment, through, program: START });
  try {
    await service.logged('listening');
    const listening = Math.round(performance.now() - started);
    await service.logged('signing keys loaded');
    const inside = firstInside(service.child.pid!);
    const { status } = await service.ask('/readyz');
    const [, memory = ''] = /^VmRSS:\s*(\d+)/m.exec(readFileSync(`/proc/${inside}/status`, 'utf8')) ?? [];
    assert.equal(status, 200);
    console.log(
      `listens after ${listening} ms; /readyz is 200; ${megabytes(Number(memory) * 1024)} resident`,
    );
    probe(environment, 0, 'ready');
    process.kill(inside, 'SIGTERM');
    const asked = performance.now();
    const code = await service.exited;
    assert.equal(code, 0, service.errors());
    console.log(`SIGTERM to process 1: exit code ${code} after ${Math.round(performance.now() - asked)} ms`);
    probe(environment, 1, 'nothing listens');
  } finally {
    await service.stop();
  }
}

/**
 * The policy of the documents, mounted as they say: for a forwarded request without a token, the proxy gets
 * 401.
 */
async function showPolicy(environment: Environment): Promise<void> {
  const [policy = ''] = samplesUnder('docs/forward-auth.md', 'Quick start', 'js');
  writeFileSync(join(root.home, 'policy.mjs'), policy);
  const service = await startProcess({ environment, through, program: ['node', 'policy.mjs'] });
  try {
    await service.logged('signing keys loaded');
    const headers = { 'X-Forwarded-Method': 'GET', 'X-Forwarded-Uri': '/orders/1' };
    const { status } = await service.ask('/forward-auth', { headers });
    assert.equal(status, 401);
    console.log(`node policy.mjs, the policy of docs/forward-auth.md: no token, ${status}`);
    probe(environment, 0, 'of the policy');
  } finally {
    await service.stop();
  }
}

async function showProgram(environment: Environment): Promise<void> {
  writeFileSync(join(root.home, 'program.mjs'), PROGRAM);
  const service = await startProcess({ environment, through, program: ['node', 'program.mjs'] });
  try {
    await service.logged('listening');
    const slow = service.ask('/slow');
    await service.ask('/healthz');
    process.kill(firstInside(service.child.pid!), 'SIGINT');
    const { status } = await slow;
    assert.deepEqual([status, await service.exited], [200, 0]);
    console.log(`node program.mjs, another service: SIGINT during a request, response 200, exit code 0`);
  } finally {
    await service.stop();
  }
}

const provider = await startProvider();

try {
  copyFileSync(provider.authorityFile, join(root.folder, 'etc/authority.pem'));
  const port = String(await freePort());
  const own = { ...ENVIRONMENT, NODE_EXTRA_CA_CERTS: '/etc/authority.pem', HOST: '127.0.0.1', PORT: port };
  const environment = { ...own, ...providerSettings(provider) };
  showFiles();
  showUser();
  await showService(environment);
  await showPolicy(environment);
  await showProgram(environment);
} finally {
  await provider.stop();
  rmSync(root.folder, { recursive: true });
}
