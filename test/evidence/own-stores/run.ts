/* The replay stores of docs/dpop.md that use a client of one's own, with a real Redis and a real PostgreSQL:
   of fifty uses of a proof at two gates, one is admitted; without the store, none.

   Shows: the ioredis and PostgreSQL stores in docs/dpop.md.
   Takes: 10 s.
   Needs: packages, redis-server, postgresql. */
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { createGate, needs, scope } from '../../../src/gate.ts';
import { createTestIssuer } from '../../../src/testing.ts';
import type { IsNewProof } from '../../../src/verify/dpop/replay.ts';
import { samplesUnder } from '../../docs/pages.ts';
import { makeProof, makeProofKey } from '../../support/proof.ts';
import { startPostgres } from '../../support/postgres.ts';
import { startRedis } from '../../support/redis.ts';
import { until } from '../../support/watch.ts';

const PATIENCE_SECONDS = 30;
const USES = 50;

interface Store {
  readonly url: string;
  readonly stop: () => Promise<unknown>;
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
postgres.ask('CREATE TABLE proofs (key text PRIMARY KEY, expires timestamptz NOT NULL)');
await tryOut('PostgreSQL', await functionOf(ofPostgres, /'postgres:[^']+'/, postgres.url), postgres.stop);
process.exit(0);
