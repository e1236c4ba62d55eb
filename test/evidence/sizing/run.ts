/* The memory that an operator plans for: that of a process, idle and after as many new tokens and proofs as it can
   take, and what cached tokens and waiting requests add. With `--write`, keeps the figures for the documents.

   Shows: the memory figures in [Sizing](docs/logs-and-metrics.md#sizing).
   Takes: 1 min.
   Needs: Linux. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pass } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startProvider } from '../../idp/provider.ts';
import { makeProof, makeProofKey } from '../../support/proof.ts';
import { providerSettings, startProcess } from '../../support/process.ts';
import { residentMebibytes, until } from '../../support/watch.ts';
import { keep } from './results.ts';

const TOKENS = 10_000;
const PROOFS = 50_000;
const WAITING = 2_000;
const PIPELINED = 50_000;
const URI = 'https://api.test/api/private';

if (globalThis.gc === undefined) throw new Error('run it with --expose-gc');
const collect = globalThis.gc;

const fileAt = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** Of the build, which operators run. */
const built = (name: string) => import(new URL(`../../../dist/${name}.js`, import.meta.url).href);

const gatehouse: typeof import('../../../src/gatehouse.ts') = await built('gatehouse');
const { createGate }: typeof import('../../../src/gate.ts') = await built('gate');
const { createTestIssuer }: typeof import('../../../src/testing.ts') = await built('testing');

/** What objects and buffers take. */
function heldBytes(): number {
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function processMemory() {
  const provider = await startProvider({ host: '127.0.0.1' });
  const environment = { ...providerSettings(provider), PROFILE: 'A', PUBLIC_URL: new URL(URI).origin };
  const service = await startProcess({ environment });
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-sizing-'));
  try {
    await service.logged('signing keys loaded');
    const idleMebibytes = residentMebibytes(service.child.pid!);
    const key = makeProofKey();
    const token = provider.issue({ cnf: { jkt: key.thumbprint } });
    const nowSeconds = Math.floor(Date.now() / 1000);
    const proofs = Array.from({ length: PROOFS }, () => makeProof(key, { token, uri: URI, nowSeconds }));
    const file = join(directory, 'proofs');
    writeFileSync(file, proofs.join('\n'));
    const before = `GET /api/private HTTP/1.1\r\nHost: api.test\r\nAuthorization: DPoP ${token}\r\nDPoP: `;
    const job = JSON.stringify({ port: service.port, file, before, connections: 100 });
    const load = spawn(process.execPath, [fileAt('../replay-store/load.mjs'), job], { stdio: 'inherit' });
    const [code] = await once(load, 'close');
    if (code !== 0) throw new Error(`the load ended with ${code}`);
    const status = readFileSync(`/proc/${service.child.pid}/status`, 'utf8');
    const [, most] = /^VmHWM:\s+(\d+) kB$/m.exec(status) ?? [];
    return { idleMebibytes, loadedMebibytes: Math.round(Number(most) / 1024) };
  } finally {
    rmSync(directory, { recursive: true });
    await service.stop();
    await provider.stop();
  }
}

async function cacheMemory() {
  const issuer = createTestIssuer();
  const gate = createGate({ ...issuer.options, tokenCacheEntries: TOKENS });

  const request = (authorization: string) => ({
    method: 'GET',
    url: '/',
    rawHeaders: ['Host', 'a', 'Authorization', authorization],
  });

  const requests = Array.from({ length: TOKENS }, (_, index) =>
    request(`Bearer ${issuer.token({ jti: String(index), scope: 'read:orders' })}`),
  );
  await gate.check(requests[0]!, gatehouse.authenticated);
  const before = heldBytes();
  // A token is cached on its second use.
  for (const one of [...requests, ...requests]) {
    const { refusal } = await gate.check(one, gatehouse.authenticated);
    if (refusal !== undefined) throw new Error(`a token got ${refusal.status}`);
  }
  const bytesEach = Math.round((heldBytes() - before) / TOKENS);
  gate.close();
  return { bytesEach };
}

async function connectionMemory() {
  let release: ((value: object) => void) | undefined;
  const released = new Promise<object>((resolve) => {
    release = resolve;
  });
  let waiting = 0;
  const routes = [
    gatehouse.get('/', gatehouse.open, () => {
      waiting += 1;
      return released;
    }),
  ];
  const options = { ...createTestIssuer().options, host: '127.0.0.1', port: 0, handlerTimeoutSeconds: 0 };
  const service = gatehouse.createService({ routes }, options);
  const { port } = new URL(await service.listen());

  /** What one more request over each of the connections adds to an idle one. */
  async function added(connections: number, times: number, isThere: () => boolean | Promise<boolean>) {
    const words = [fileAt('clients.mjs'), port, String(connections)];
    const clients = spawn(process.execPath, words, { stdio: ['pipe', 'pipe', 'inherit'] });
    clients.stdin.write('1 /healthz\n');
    await once(clients.stdout, 'data');
    const before = heldBytes();
    waiting = 0;
    clients.stdin.write(`${times} /\n`);
    await until('the requests wait', isThere, 30);
    const bytes = heldBytes() - before;
    clients.kill();
    await once(clients, 'close');
    return bytes;
  }

  /** The service has stopped reading. */
  const isSteady = async () => {
    const before = process.memoryUsage().heapUsed;
    await pass(500);
    return waiting > 0 && process.memoryUsage().heapUsed - before < 64 * 1024;
  };

  try {
    const waitingBytesEach = Math.round((await added(WAITING, 1, () => waiting === WAITING)) / WAITING);
    const pipelined = await added(1, PIPELINED, isSteady);
    return { waitingBytesEach, pipelinedMebibytes: Math.round(pipelined / 2 ** 20) };
  } finally {
    release?.({});
    await service.stop();
  }
}

const figures = {
  process: await processMemory(),
  cache: await cacheMemory(),
  connections: await connectionMemory(),
};

console.log(figures);
keep(figures);
