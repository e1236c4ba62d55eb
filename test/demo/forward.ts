/*
 * `npm run demo -- forward`: nginx in front of a server in Python, with the files of docs/forward-auth.md,
 * and gatehouse beside it with the policy of that page. A token of the development provider is in each line.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startProvider, type Provider } from '../idp/provider.ts';
import { NGINX, sampleUnder } from '../options/forward-auth-proxies.ts';
import { freePort } from '../support/free-port.ts';
import { startProcess } from '../support/process.ts';
import { fetchTokens, makeClients } from './clients.ts';
import { shellLine, tokenSettings } from './lines.ts';
import type { Printer } from './replicas.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const DPOP_CALL = fileURLToPath(new URL('dpop-call.mjs', import.meta.url));

const CLIENTS = makeClients({ reader: { scopes: ['read:orders'] }, visitor: {} });
const [READER] = CLIENTS;

/** The programs that are missing for this demo. */
export const MISSING = [
  ...(NGINX.missing === undefined ? [] : [NGINX.missing]),
  ...(spawnSync('python3', ['--version']).error === undefined ? [] : ['python3 is not installed']),
];

/** Stays up until `ending` is aborted; gives the exit code. */
export async function runForward(ending: AbortController, printer: Printer): Promise<number> {
  if (MISSING.length > 0) {
    process.stderr.write(`${MISSING.join(', ')} (Debian: apt-get install nginx-light python3).\n`);
    return 1;
  }

  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-demo-'));
  const provider = await startProvider({ clients: CLIENTS, scopes: ['read:orders'], host: '127.0.0.1' });
  try {
    return await runBeside(directory, provider, ending, printer);
  } finally {
    await provider.stop();
    rmSync(directory, { recursive: true });
  }
}

async function runBeside(
  directory: string,
  provider: Provider,
  ending: AbortController,
  { print, heading, describe }: Printer,
): Promise<number> {
  const program = writeProgram(directory);
  const api = await startPython(directory);
  const gatehouse = await startProcess({
    program,
    environment: {
      IDP_DOMAIN: provider.domain,
      IDP_AUDIENCE: provider.audience,
      IDP_DPOP_MODE: 'ALLOWED',
      NODE_EXTRA_CA_CERTS: provider.authorityFile,
      HOST: '127.0.0.1',
      ACCESS_LOG: 'true',
    },

    keeps({ level, message, time: _, ...fields }) {
      print(`gatehouse: ${describe({ level, message, fields })}`);
      return true;
    },
  });
  const nginx = await NGINX.start({ gatehouse: gatehouse.port, api: api.port });
  try {
    const origin = `http://127.0.0.1:${nginx.port}`;
    print(`\n${heading('nginx → gatehouse, nginx → a server in Python')}\n`);
    print(`  nginx      ${origin}\n  gatehouse  http://127.0.0.1:${gatehouse.port}/forward-auth`);
    print(`  python3    http://127.0.0.1:${api.port}\n  provider   ${provider.issuer}\n`);
    print('Each line can be pasted into another terminal; the log below has what nginx asked about.\n');
    for (const [title, ...words] of await callsOf(origin, provider)) {
      print(`${heading(title)}\n${shellLine(...words)}\n`);
    }
    print(heading('Everything is up. Ctrl-C ends it. What gatehouse logs from now on:'));
    await Promise.race([gatehouse.exited, aborted(ending.signal)]);
    return ending.signal.aborted ? 0 : 1;
  } finally {
    await nginx.stop();
    await gatehouse.stop();
    api.child.kill();
    await api.exited;
  }
}

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve());
  });

/** The policy of the page, beside the built package as in the image. */
function writeProgram(directory: string): readonly string[] {
  for (const name of ['dist', 'package.json']) symlinkSync(join(ROOT, name), join(directory, name));
  const file = join(directory, 'policy.mjs');
  writeFileSync(file, sampleUnder('Quick start', 'js'));
  return [process.execPath, '--preserve-symlinks', file];
}

/** The server of the page. Resolves when it listens. */
async function startPython(directory: string) {
  const port = await freePort();
  const file = join(directory, 'api.py');
  writeFileSync(file, sampleUnder('Quick start', 'python').replace('8000', String(port)));
  const child = spawn('python3', [file], { stdio: 'ignore' });
  const exited = once(child, 'exit');
  while (child.exitCode === null && !(await isListening(port))) await setTimeout(50);
  return { port, child, exited };
}

const isListening = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });

async function callsOf(origin: string, provider: Provider) {
  const tokens = await fetchTokens(provider, CLIENTS);
  const bearer = (id: string) => ['-H', `Authorization: Bearer ${tokens.get(id)}`];
  const settings = Object.entries(tokenSettings(provider, READER!)).map((pair) => pair.join('='));

  return [
    ['An open route: 200', 'curl', '-i', `${origin}/status`],
    ['No token: 401, with the challenges', 'curl', '-i', `${origin}/orders/7`],
    [
      'A token with the scope: 200, and Python knows the caller',
      'curl',
      '-i',
      `${origin}/orders/7`,
      ...bearer('reader'),
    ],
    ['A token without it: 403', 'curl', '-i', `${origin}/orders/7`, ...bearer('visitor')],
    ['A bound token with a proof: 200', 'env', ...settings, 'node', DPOP_CALL, `${origin}/orders/7`],
    [
      'A caller that the client made up: 200, and the server sees no caller',
      'curl',
      '-i',
      `${origin}/status`,
      '-H',
      'X-Auth-Subject: root',
    ],
    ['What no route names: 403', 'curl', '-i', `${origin}/other`, ...bearer('reader')],
    [
      'A path that servers read in two ways: 403',
      'curl',
      '-i',
      '--path-as-is',
      `${origin}/status/..%2Forders`,
    ],
  ] as const;
}
