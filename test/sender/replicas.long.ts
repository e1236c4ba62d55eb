/* Replicas as real processes that share a real store: a proof is good once between them, whatever becomes of the store meanwhile. */
import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { startLoad, type Shot } from '../support/load.ts';
import { named, NO_STORE } from '../support/redis.ts';
import { openReplicas, useEverywhere, type Answers, type Replicas } from './replicas.ts';

const RECOVERY_MILLIS = 3_000;
const options = { skip: NO_STORE !== undefined };

const countOf = (statuses: readonly number[], status: number): number =>
  statuses.filter((other) => other === status).length;

/** The same request so many times. */
function times(count: number, shot: Shot): () => Shot | undefined {
  let left = count;
  return () => {
    left -= 1;
    return left >= 0 ? shot : undefined;
  };
}

/** The status of one request. */
async function ask(port: number, shot: Shot): Promise<number> {
  let answer = 0;

  const heed = ({ status }: { status: number }) => {
    answer = status;
  };

  await startLoad({ port, connections: 1, next: times(1, shot), heed }).ended;
  return answer;
}

/** Asks each replica with one new proof after another until it admits one; gives the milliseconds that the slowest took. */
async function recover({ services, proofShot }: Replicas): Promise<number> {
  const began = performance.now();
  const recoveries = services.map(async ({ port }) => {
    while ((await ask(port, proofShot())) !== 200) await delay(10);
    return performance.now() - began;
  });
  const slowest = Math.max(...(await Promise.all(recoveries)));
  assert.ok(slowest <= RECOVERY_MILLIS, `recovered after ${slowest} ms`);
  return slowest;
}

/** Uses proofs everywhere before, while and after something befalls the store; then each of them once more. */
async function survive(t: TestContext, befall: (replicas: Replicas) => Promise<void>): Promise<void> {
  const replicas = await openReplicas(t);
  const { services, bearerShot, proofShot } = replicas;
  const shots: Shot[] = [];
  const answers: Answers = new Map();

  const namesOf = (status: number) =>
    [...answers].filter(([, statuses]) => statuses.includes(status)).map(([name]) => name);

  const admitMore = async (more: number) => {
    const enough = namesOf(200).length + more;
    while (namesOf(200).length < enough) await delay(10);
  };

  const plan = { connections: 4, pauseMillis: 5 };

  const shotAt = (index: number) => {
    shots[index] ??= proofShot();
    return shots[index];
  };

  const loads = useEverywhere(replicas, shotAt, answers, plan);
  const bearers = services.map(({ port }) =>
    startLoad({ port, connections: 2, pauseMillis: 2, next: () => bearerShot }),
  );

  await admitMore(200);
  await befall(replicas);
  const millis = await recover(replicas);
  await admitMore(200);
  for (const load of [...loads, ...bearers]) {
    const tally = await load.stop();
    assert.deepEqual([tally.lost, tally.refusedConnections], [0, 0]);
  }
  assert.deepEqual(Object.assign({}, ...bearers.map(({ tally }) => tally.except('bearer 200'))), {});
  assert.ok(namesOf(503).length > 0);

  // What was refused with 503 may have been recorded; what was admitted has been.
  const again = useEverywhere(replicas, (index) => shots[index], answers, { connections: 4 });
  await Promise.all(again.map(({ ended }) => ended));
  const outcomes = [...answers.values()];
  const admitted = namesOf(200);
  assert.deepEqual(
    outcomes.filter((statuses) => countOf(statuses, 200) > 1),
    [],
  );
  assert.deepEqual(
    outcomes.flat().filter((status) => ![200, 401, 503].includes(status)),
    [],
  );
  assert.equal(await replicas.recorded(admitted), admitted.length);
  for (const { logs } of services) {
    const told = logs.map(({ message }) => message).filter((message) => message.startsWith('replay store'));
    assert.deepEqual(told, ['replay store ready', 'replay store lost', 'replay store ready']);
  }
  t.diagnostic(
    `${answers.size} proofs, ${admitted.length} admitted; recovered after ${millis.toFixed(0)} ms`,
  );
}

describe('three replicas that share a store', { timeout: 120_000 }, () => {
  test(named('admit one of fifty uses of a proof at once [RFC 9449 §11.1, E3]'), options, async (t) => {
    const { services, proofShot } = await openReplicas(t);
    for (let round = 0; round < 10; round += 1) {
      const shot = proofShot();
      const uses = Array.from({ length: 50 }, (_, use) => ask(services[use % 3]!.port, shot));
      const statuses = await Promise.all(uses);
      assert.deepEqual([countOf(statuses, 200), countOf(statuses, 401)], [1, 49]);
    }
  });

  test(named('admit each of a thousand proofs once [RFC 9449 §11.1, E3]'), options, async (t) => {
    const replicas = await openReplicas(t);
    const shots = Array.from({ length: 1_000 }, () => replicas.proofShot());
    const answers: Answers = new Map();
    const loads = useEverywhere(replicas, (index) => shots[index], answers, { connections: 8 });
    await Promise.all(loads.map(({ ended }) => ended));
    const outcomes = [...answers.values()].map((statuses) => statuses.sort().join(' '));
    assert.deepEqual([outcomes.length, new Set(outcomes)], [1_000, new Set(['200 401 401'])]);
    assert.equal(await replicas.recorded(shots.map(({ kind }) => kind)), 1_000);
  });

  const kill = async ({ redis }: Replicas) => {
    await redis.kill();
    await delay(1_500);
    await redis.start();
  };

  const halt = async ({ redis }: Replicas) => {
    redis.signal('SIGSTOP');
    await delay(4_000);
    redis.signal('SIGCONT');
  };

  for (const [what, befall] of [
    ['is killed and comes back', kill],
    ['stands still and goes on', halt],
  ] as const) {
    const name = `admit no proof twice and none unrecorded when the store ${what}, and lose no Bearer request`;
    test(named(name), options, (t) => survive(t, befall));
  }

  test(named('begin without a store, and admit proofs once it is there'), options, async (t) => {
    const replicas = await openReplicas(t, 'down');
    const { services, redis, proofShot, bearerShot } = replicas;
    for (const service of services) {
      assert.equal((await service.logged('listening')).replayStore, 'shared');
      assert.equal((await service.ask('/readyz')).status, 200);
      assert.equal(await ask(service.port, bearerShot), 200);
      assert.equal(await ask(service.port, proofShot()), 503);
    }
    await redis.start();
    await recover(replicas);
    for (const { logs, errors } of services) {
      assert.doesNotMatch(JSON.stringify(logs) + errors(), /redis:|p@ss|p%40ss/);
    }
  });
});
