/* The replay stores of docs/dpop.md that use a client of one's own, with a real Redis and a real PostgreSQL:
   of fifty uses of a proof at two gates, one is admitted; without the store, none.

   Shows: the ioredis and PostgreSQL stores of docs/dpop.md accepting each proof once.
   Takes: 10 s.
   Needs: packages, redis-server, postgresql. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createGate, needs, scope } from '../../../src/gate.ts';
import { createTestIssuer } from '../../../src/testing.ts';
import type { IsNewProof } from '../../../src/verify/dpop/replay.ts';
import { samplesUnder } from '../../docs/pages.ts';
import { makeProof, makeProofKey } from '../../support/proof.ts';
import { freePort } from '../../support/free-port.ts';
import { startRedis } from '../../support/redis.ts';
import { until } from '../../support/watch.ts';

const PATIENCE_SECONDS = 30;
const USES = 50;

interface Store {
  readonly url: string;
  readonly stop: () => Promise<unknown>;
}

/** PostgreSQL refuses to run as the administrator. */
function unprivileged() {
  if (process.getuid?.() !== 0) return {};

  const [, , uid, gid] = spawnSync('getent', ['passwd', 'postgres'], { encoding: 'utf8' }).stdout.split(':');
  return { uid: Number(uid), gid: Number(gid) };
}

function programsOfPostgres() {
  const [version = ''] = readdirSync('/usr/lib/postgresql').toSorted().toReversed();
  return `/usr/lib/postgresql/${version}/bin`;
}

async function startPostgres(): Promise<Store> {
  const user = unprivileged();
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-postgres-'));
  if (user.uid !== undefined) chownSync(directory, user.uid, user.gid);
  const programs = programsOfPostgres();
  const data = join(directory, 'data');
  const made = spawnSync(`${programs}/initdb`, ['-D', data, '-U', 'gatehouse', '-A', 'trust'], {
    ...user,
    cwd: directory,
    encoding: 'utf8',
  });
  assert.equal(made.status, 0, made.stderr);

  const port = await freePort();
  const words = ['-D', data, '-p', String(port), '-h', '127.0.0.1', '-k', directory];
  const child = spawn(`${programs}/postgres`, words, { ...user, cwd: directory, stdio: 'ignore' });
  const url = `postgres://gatehouse@127.0.0.1:${port}/postgres`;
  const table = 'CREATE TABLE proofs (key text PRIMARY KEY, expires timestamptz NOT NULL)';
  const isThere = () => spawnSync('psql', [url, '-c', table]).status === 0;
  await until('PostgreSQL is there', isThere, PATIENCE_SECONDS);

  const stop = async () => {
    child.kill('SIGINT');
    await once(child, 'exit');
    rmSync(directory, { recursive: true, force: true });
  };

  return { url, stop };
}

async function startOwnRedis(): Promise<Store> {
  const redis = await startRedis();
  return { url: `redis://127.0.0.1:${redis.port}`, stop: redis.stop };
}

/** The function of a sample, with another address. */
async function functionOf(sample: string, address: RegExp, url: string): Promise<IsNewProof> {
  const file = fileURLToPath(new URL(`sample-${process.pid}-${sample.length}.mts`, import.meta.url));
  assert.match(sample, address);
  writeFileSync(file, sample.replace(address, `'${url}'`));
  try {
    return (await import(file)).isNew;
  } finally {
    rmSync(file);
  }
}

async function tryOut(name: string, isNew: IsNewProof, stop: () => Promise<unknown>) {
  const issuer = createTestIssuer();
  const gates = [0, 1].map(() => createGate({ ...issuer.options, replayStore: isNew }));
  const key = makeProofKey();
  const token = issuer.token({ scope: 'a', cnf: { jkt: key.thumbprint } });
  const uri = 'http://api.test/';

  const ask = async (proof: string, gate = gates[0]!) => {
    const rawHeaders = ['Host', 'api.test', 'Authorization', `DPoP ${token}`, 'DPoP', proof];
    const verdict = await gate.check({ method: 'GET', url: '/', rawHeaders }, needs(scope('a')));
    return verdict.refusal === undefined ? 200 : verdict.refusal.status;
  };

  const proofNow = () => makeProof(key, { token, uri, nowSeconds: Math.floor(Date.now() / 1000) });
  await until(`${name} responds`, async () => (await ask(proofNow())) === 200, PATIENCE_SECONDS);
  const proof = proofNow();
  const uses = Array.from({ length: USES }, (_, use) => ask(proof, gates[use % 2]));
  const statuses = (await Promise.all(uses)).sort();
  assert.deepEqual(statuses, [200, ...Array<number>(USES - 1).fill(401)]);
  await stop();
  assert.equal(await ask(proofNow()), 503);
  console.log(`${name}: 1 of ${USES} uses of a proof was admitted; without the store, none`);
  for (const gate of gates) gate.close();
}

const [ofRedis = '', ofPostgres = ''] = samplesUnder('docs/dpop.md', 'Your own store', 'ts');
const redis = await startOwnRedis();
await tryOut('ioredis', await functionOf(ofRedis, /'redis:[^']+'/, redis.url), redis.stop);
const postgres = await startPostgres();
await tryOut('PostgreSQL', await functionOf(ofPostgres, /'postgres:[^']+'/, postgres.url), postgres.stop);
process.exit(0);
