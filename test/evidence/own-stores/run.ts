/* The replay stores of docs/dpop.md that use a client of one's own, with a real Redis and a real PostgreSQL:
   of fifty uses of a proof at two gates, one is admitted; without the store, none. A reply that is lost is
   503, never a proof used before, and a connection that the network has forgotten is soon replaced.

   Shows: the ioredis and PostgreSQL stores in docs/dpop.md.
   Takes: 10 s.
   Needs: packages, redis-server, postgresql. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
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

interface Relay {
  readonly port: number;
  /** Ends the connection in place of the next reply. */
  readonly loseReply: () => void;
  /** From now on, nothing passes over the present connections, and neither side is told. */
  readonly forget: () => void;
}

/** A network in front of a store. */
async function startRelay(storePort: number): Promise<Relay> {
  const clients = new Set<Socket>();
  const forgotten = new WeakSet<Socket>();
  let isReplyLost = false;

  const server = createServer((client) => {
    const store = connect(storePort, '127.0.0.1');
    clients.add(client);
    for (const [from, to] of [
      [client, store],
      [store, client],
    ] as const) {
      from.on('error', () => {});
      from.on('close', () => to.destroy());
    }
    client.on('data', (bytes) => {
      if (!forgotten.has(client)) store.write(bytes);
    });
    store.on('data', (bytes) => {
      if (isReplyLost) client.destroy();
      else if (!forgotten.has(client)) client.write(bytes);
      isReplyLost = false;
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    port: (server.address() as AddressInfo).port,
    loseReply() {
      isReplyLost = true;
    },
    forget() {
      for (const client of clients) forgotten.add(client);
    },
  };
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

async function tryOut(name: string, isNew: IsNewProof, relay: Relay, stop: () => Promise<unknown>) {
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

  const isThere = async () => (await ask(proofNow())) === 200;
  relay.loseReply();
  assert.equal(await ask(proofNow()), 503, 'the store may have recorded the proof, or not');
  await until(`${name} is connected again`, isThere, PATIENCE_SECONDS);
  relay.forget();
  assert.equal(await ask(proofNow()), 503);
  await until(`${name} has a new connection`, isThere, PATIENCE_SECONDS);

  await stop();
  assert.equal(await ask(proofNow()), 503);
  console.log(`${name}: 1 of ${USES} uses of a proof was admitted; without the store, none`);
  for (const gate of gates) gate.close();
}

const [ofRedis = '', ofPostgres = ''] = samplesUnder('docs/dpop.md', 'Your own store', 'ts');
const redis = await startRedis();
const toRedis = await startRelay(redis.port);
const isNewInRedis = await functionOf(ofRedis, /'redis:[^']+'/, `redis://127.0.0.1:${toRedis.port}`);
await tryOut('ioredis', isNewInRedis, toRedis, redis.stop);

const postgres = await startPostgres();
postgres.ask('CREATE TABLE proofs (key text PRIMARY KEY, expires timestamptz NOT NULL)');
const { port } = new URL(postgres.url);
const toPostgres = await startRelay(Number(port));
const address = postgres.url.replace(port, String(toPostgres.port));
const isNewInPostgres = await functionOf(ofPostgres, /'postgres:[^']+'/, address);
await tryOut('PostgreSQL', isNewInPostgres, toPostgres, postgres.stop);
process.exit(0);
