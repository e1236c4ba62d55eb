/* The cost of a shared replay store: compares a service with a real store and one that remembers proofs in
   its own process, in alternating rounds. Each gets 5,000 new proofs a second, and then as many as it can
   serve; figures are medians of the rounds. The service has one core, store and load the other. Exits with 1
   if the service with the store does not manage 5,000 a second. The argument is the number of rounds (5). With
   `--write`, keeps the memory of a proof for the documents.

   Shows: the cost and memory of a shared replay store under load.
   Takes: 3 min.
   Needs: redis-server, a quiet machine. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startProvider } from '../../idp/provider.ts';
import { makeProof, makeProofKey } from '../../support/proof.ts';
import { NO_STORE, startRedis } from '../../support/redis.ts';
import { providerSettings, startProcess } from '../../support/process.ts';
import { keep } from '../sizing/results.ts';

const RATE = 5_000;
const SECONDS = 5;
const CONNECTIONS = 50;
const URI = 'https://api.test/api/private';
const LOAD = fileURLToPath(new URL('load.mjs', import.meta.url));
const KINDS = ['process', 'store'] as const;
type Kind = (typeof KINDS)[number];

const rounds = Number(process.argv.slice(2).find((word) => word !== '--write') ?? 5);
if (!(rounds > 0)) throw new Error('the argument is a number of rounds, such as 5');

const canPin = availableParallelism() > 1 && spawnSync('taskset', ['-c', '0,1', 'true']).status === 0;

const pin = (pid: number, core: number) => {
  if (canPin) execFileSync('taskset', ['-a', '-c', '-p', String(core), String(pid)], { stdio: 'ignore' });
};

/** The processor time of a process so far, in milliseconds. */
const busyMillis = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
};

const median = (values: readonly number[]): number =>
  [...values].sort((one, other) => one - other)[values.length >> 1]!;

if (NO_STORE !== undefined) {
  console.error(`evidence replay-store: ${NO_STORE}`);
  process.exit(1);
}

pin(process.pid, 1);
const directory = mkdtempSync(join(tmpdir(), 'gatehouse-evidence-'));
const provider = await startProvider({ host: '127.0.0.1' });
const redis = await startRedis();
pin(redis.pid(), 1);
const key = makeProofKey();
const token = provider.issue({ cnf: { jkt: key.thumbprint } });

/** A file with this many new proofs. */
function makeProofs(count: number): string {
  const file = join(directory, 'proofs');
  const nowSeconds = Math.floor(Date.now() / 1000);
  const proofs = Array.from({ length: count }, () => makeProof(key, { token, uri: URI, nowSeconds }));
  writeFileSync(file, proofs.join('\n'));
  return file;
}

async function load(port: number, count: number, rate?: number): Promise<Record<string, number>> {
  const before = `GET /api/private HTTP/1.1\r\nHost: api.test\r\nAuthorization: DPoP ${token}\r\nDPoP: `;
  const job = JSON.stringify({ port, file: makeProofs(count), before, rate, connections: CONNECTIONS });
  const child = spawn(process.execPath, [LOAD, job], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.on('data', (text) => {
    output += text;
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`the load ended with ${code}`);
  return JSON.parse(output);
}

const environment = { ...providerSettings(provider), PROFILE: 'A', PUBLIC_URL: 'https://api.test' };
const stores = { process: {}, store: { IDP_DPOP_REPLAY_STORE: `redis://127.0.0.1:${redis.port}` } };
const figures = new Map<string, number[]>();

const note = (name: string, figure: number) => figures.set(name, [...(figures.get(name) ?? []), figure]);

async function measure(kind: Kind, isNoted: boolean): Promise<void> {
  const service = await startProcess({ environment: { ...environment, ...stores[kind] } });
  const pid = service.child.pid!;
  pin(pid, 0);
  await service.logged('signing keys loaded');
  if (kind === 'store') await service.logged('replay store ready');
  await load(service.port, 5_000);

  const busyBefore = { service: busyMillis(pid), store: busyMillis(redis.pid()) };
  const count = RATE * SECONDS;
  const steady = await load(service.port, count, RATE);
  const busy = {
    service: busyMillis(pid) - busyBefore.service,
    store: busyMillis(redis.pid()) - busyBefore.store,
  };
  const most = await load(service.port, count);
  await service.stop();
  if (!isNoted) return;

  for (const name of ['p50', 'p99', 'p999', 'perSecond']) note(`${kind} ${name} ms`, steady[name]!);
  note(`${kind} service us`, (busy.service * 1000) / count);
  note(`${kind} redis us`, (busy.store * 1000) / count);
  note(`${kind} most`, most.perSecond!);
}

/** Bytes of memory, and proofs, in the store. */
async function storeHolds(): Promise<{ bytes: number; proofs: number }> {
  const lines = await redis.ask('INFO memory', 'DBSIZE');

  const numberAfter = (start: string) =>
    Number(lines.findLast((line) => line.startsWith(start))?.slice(start.length));

  return { bytes: numberAfter('used_memory:'), proofs: numberAfter(':') };
}

const empty = await storeHolds();
let full = empty;

try {
  for (let round = -1; round < rounds; round += 1) {
    for (const kind of KINDS) await measure(kind, round >= 0);
    const now = await storeHolds();
    if (now.proofs > full.proofs) full = now;
  }
} finally {
  await redis.stop();
  await provider.stop();
  rmSync(directory, { recursive: true });
}

const of = (kind: Kind, name: string) => median(figures.get(`${kind} ${name}`)!);

const added = (name: string) => {
  const pairs = figures
    .get(`store ${name}`)!
    .map((figure, round) => figure - figures.get(`process ${name}`)![round]!);
  return median(pairs);
};

console.log(
  `${canPin ? 'service on core 0; store and load on core 1' : 'not pinned'}, Node ${process.version}`,
);

for (const kind of KINDS) {
  const times = ['p50', 'p99', 'p999']
    .map((name) => `${name} ${of(kind, `${name} ms`).toFixed(2)} ms`)
    .join(', ');
  const busy = `service ${of(kind, 'service us').toFixed(0)} us, redis ${of(kind, 'redis us').toFixed(0)} us a proof`;
  console.log(
    `${kind}: at ${of(kind, 'perSecond ms').toFixed(0)}/s ${times}; ${busy}; at most ${of(kind, 'most').toFixed(0)}/s`,
  );
}

const more = ['p50', 'p99', 'p999'].map((name) => `${name} ${added(`${name} ms`).toFixed(2)} ms`).join(', ');
console.log(`added by the store: ${more}`);
const bytesEach = (full.bytes - empty.bytes) / (full.proofs - empty.proofs);
console.log(`memory of the store: ${bytesEach.toFixed(0)} bytes a proof, of ${full.proofs}`);

if (of('store', 'most') >= RATE) {
  keep({ 'replay-store': { bytesEach: Math.round(bytesEach) } });
} else {
  console.error(
    `the service with the store managed fewer than ${RATE} proofs a second; is the machine quiet?`,
  );
  process.exitCode = 1;
}
