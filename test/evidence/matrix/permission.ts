/* Starts the built service under Node's permission model, with read access only to its files, and sends one
   request of each kind. */
import { execFileSync, spawn, spawnSync, type SpawnSyncOptions } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { startProvider } from '../../idp/provider.ts';
import { ask, type Ask } from '../../support/client.ts';
import { makeProof, makeProofKey } from '../../support/proof.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const ORIGIN = 'https://app.test';

export interface Outcome {
  /** Relative to the directory of the service. */
  readonly flags: readonly string[];
  readonly requests: number;
  readonly problems: readonly string[];
}

/** The flags of this version: the one that turns the model on, and those that the service needs. */
function flagsOf(binary: string): { on: string[]; files: string[] } {
  const takes = (...given: string[]) =>
    spawnSync(binary, [...given, '--allow-fs-read=*', '-e', '']).status === 0;

  const on = takes('--permission') ? '--permission' : '--experimental-permission';
  const network = takes(on, '--allow-net') ? ['--allow-net'] : [];
  return { on: [on, ...network], files: ['dist/', 'application.yml', '.env'] };
}

type Expected = readonly [what: string, path: string, request: Ask, expected: string];

/** One request of each kind, with the expected status and `error`. */
function requestsOf(issue: (claims?: Record<string, unknown>) => string, port: number): Expected[] {
  const key = makeProofKey();
  const token = issue();
  const bound = issue({ cnf: { jkt: key.thumbprint } });
  const proof = makeProof(key, {
    token: bound,
    uri: `http://127.0.0.1:${port}/api/private`,
    nowSeconds: Math.floor(Date.now() / 1000),
  });
  const byDpop = { headers: { Authorization: `DPoP ${bound}`, DPoP: proof } };
  return [
    ['a public route', '/api/public', {}, '200'],
    ['a protected route', '/api/private', { token }, '200'],
    ['a protected route without a token', '/api/private', {}, '401 unauthorized'],
    [
      'a forged token',
      '/api/private',
      { token: `${token.slice(0, -20)}${'A'.repeat(20)}` },
      '401 invalid_token',
    ],
    [
      'an unknown key',
      '/api/private',
      { token: `${Buffer.from('{"alg":"RS256","kid":"x"}').toString('base64url')}.e30.AA` },
      '401 invalid_token',
    ],
    ['a scope', '/api/admin', { token: issue({ scope: 'admin' }) }, '200'],
    ['a missing scope', '/api/admin', { token }, '403 insufficient_scope'],
    ['a proof', '/api/private', byDpop, '200'],
    ['a used proof', '/api/private', byDpop, '401 invalid_dpop_proof'],
    [
      'two credentials',
      '/api/private',
      { headers: { Authorization: [`Bearer ${token}`, 'Bearer x'] } },
      '400 invalid_request',
    ],
    ['no path', '/nowhere', {}, '404 not_found'],
    ['another method', '/api/public', { method: 'POST', body: 'x' }, '405 method_not_allowed'],
    [
      'a preflight',
      '/api/private',
      { method: 'OPTIONS', headers: { Origin: ORIGIN, 'Access-Control-Request-Method': 'GET' } },
      '204',
    ],
    [
      'large header fields',
      '/api/public',
      { headers: { Cookie: 'x'.repeat(17_000) } },
      '431 header_fields_too_large',
    ],
    ['readiness', '/readyz', {}, '200'],
  ];
}

/** Permissions that the process has but does not need; there should be none. */
function excess(binary: string, flags: readonly string[], directory: string): string[] {
  const wanted = `process.permission.has('fs.read', ${JSON.stringify(join(directory, 'dist/server.js'))})`;
  const unwanted = [
    "'fs.write'",
    "'child'",
    "'worker'",
    "'fs.read', '/etc/hosts'",
    `'fs.read', ${JSON.stringify(ROOT)}`,
    `'fs.write', ${JSON.stringify(directory)}`,
  ];
  const script = `console.log(JSON.stringify([!${wanted}, ${unwanted.map((what) => `process.permission.has(${what})`).join(', ')}]))`;
  const has = JSON.parse(
    execFileSync(binary, [...flags, '--no-warnings', '-e', script], { cwd: directory, encoding: 'utf8' }),
  ) as boolean[];
  return ['no read access to dist/', ...unwanted]
    .filter((_, index) => has[index])
    .map((what) => `permission: ${what}`);
}

/** Where a flag allows the network, the service must say that it lacks it. */
function withoutNetwork(binary: string, flags: readonly string[], place: SpawnSyncOptions): string[] {
  const others = flags.filter((flag) => flag !== '--allow-net');
  if (others.length === flags.length) return [];

  const { status, stderr } = spawnSync(binary, [...others, 'dist/server.js'], place);
  const isSaid = status === 2 && String(stderr).includes('cannot listen');
  return isSaid ? [] : [`without --allow-net: exits with ${status}, and says: ${stderr}`];
}

export async function askUnderPermission(binary: string): Promise<Outcome> {
  const { on, files } = flagsOf(binary);
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'gatehouse-')));
  const provider = await startProvider();
  const flags = [...on, ...files.map((name) => `--allow-fs-read=${join(directory, name)}`)];
  cpSync(join(ROOT, 'dist'), join(directory, 'dist'), { recursive: true });
  const idp = `idp:\n  domain: "${provider.domain}"\n  audience: "${provider.audience}"\n`;
  writeFileSync(
    join(directory, 'application.yml'),
    `${idp}api:\n  scopePolicy: true\ncors:\n  allowedOrigins: ["${ORIGIN}"]\nserver:\n  port: 0\n`,
  );
  const env = { PATH: process.env.PATH ?? '', PROFILE: 'A', NODE_EXTRA_CA_CERTS: provider.authorityFile };
  const place = { cwd: directory, env };
  const child = spawn(binary, [...flags, 'dist/server.js'], {
    ...place,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'close');
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  const port = new Promise<number>((resolve) => {
    createInterface(child.stdout)
      .on('line', (line) => {
        const entry = JSON.parse(line) as { message: string; port: number };
        if (entry.message === 'listening') resolve(entry.port);
      })
      .on('close', () => resolve(0));
  });
  const problems = [...excess(binary, flags, directory), ...withoutNetwork(binary, flags, place)];
  let requests = 0;
  try {
    const listening = await port;
    if (listening === 0) problems.push('does not start');
    for (const [what, path, request, expected] of listening === 0
      ? []
      : requestsOf((claims) => provider.issue(claims), listening)) {
      const { status, body } = await ask(listening, path, request);
      const found = [status, body?.error].filter(Boolean).join(' ');
      requests += 1;
      if (found !== expected) problems.push(`${what}: ${found} instead of ${expected}`);
    }
    child.kill('SIGTERM');
    const [code] = await exited;
    if (code !== 0) problems.push(`exits with ${code}`);
    const unexpected = errors
      .split('\n')
      .filter((line) => line !== '' && !/ExperimentalWarning|trace-warnings/.test(line));
    problems.push(...unexpected.map((line) => `standard error: ${line}`));
  } finally {
    child.kill('SIGKILL');
    await exited;
    await provider.stop();
    rmSync(directory, { recursive: true });
  }
  return { flags: [...on, ...files.map((name) => `--allow-fs-read=$PWD/${name}`)], requests, problems };
}
