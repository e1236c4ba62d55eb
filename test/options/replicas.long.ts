/* Replicas as real processes with one real store: a proof is accepted once among them, whatever happens to
   the store. */
import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { startLoad, type Shot } from '../support/load.ts';
import { named, NO_STORE } from '../support/redis.ts';
import { Responses, openReplicas, useEverywhere, type Replicas } from './replicas.ts';

const RECOVERY_MILLIS = 3_000;
const options = { skip: NO_STORE !== undefined };

const countOf = (statuses: readonly number[], status: number): number =>
  statuses.filter((other) => other === status).length;

/** The same request this many times. */
function times(count: number, shot: Shot): () => Shot | undefined {
  let left = count;
  return () => {
    left -= 1;
    return left >= 0 ? shot : undefined;
  };
}

/** The status of one request. */
async function ask(port: number, shot: Shot): Promise<number> {
  let response = 0;

  const heed = ({ status }: { status: number }) => {
    response = status;
  };

  await startLoad({ port, connections: 1, next: times(1, shot), heed }).ended;
  return response;
}

/**
 * Waits until each replica accepts a proof, after it has logged the store as ready `count` times. Returns the
 * milliseconds of the slowest.
 */
async function recover({ services, proofShot }: Replicas, count: number): Promise<number> {
  const began = performance.now();
  const recoveries = services.map(async ({ port, logged }) => {
    await logged('replay store ready', count);
    assert.equal(await ask(port, proofShot()), 200);
    return performance.now() - began;
  });
  const slowest = Math.max(...(await Promise.all(recoveries)));
  assert.ok(slowest <= RECOVERY_MILLIS, `recovered after ${slowest} ms`);
  return slowest;
}

/** Uses proofs at every replica before, during and after an outage of the store, then each once more. */
async function survive(
  t: TestContext,
  leave: (replicas: Replicas) => unknown,
  comeBack: (replicas: Replicas) => unknown,
): Promise<void> {
  const replicas = await openReplicas(t);
  const { services, bearerShot, proofShot } = replicas;
  const shots: Shot[] = [];
  const responses = new Responses();
  const plan = { connections: 4, pauseMillis: 5 };

  const shotAt = (index: number) => {
    shots[index] ??= proofShot();
    return shots[index];
  };

  const loads = useEverywhere(replicas, shotAt, responses, plan);
  const bearers = services.map(({ port }) =>
    startLoad({ port, connections: 2, pauseMillis: 2, next: () => bearerShot }),
  );

  await responses.more(200, 200);
  await leave(replicas);
  await Promise.all(services.map(({ logged }) => logged('replay store lost')));
  await responses.more(503, 1_000);
  await comeBack(replicas);
  const millis = await recover(replicas, 2);
  await responses.more(200, 200);
  for (const load of [...loads, ...bearers]) {
    const tally = await load.stop();
    assert.deepEqual([tally.lost, tally.refusedConnections], [0, 0]);
  }
  assert.deepEqual(Object.assign({}, ...bearers.map(({ tally }) => tally.except('bearer 200'))), {});

  // A proof refused with 503 may have been recorded; an accepted one has been.
  const again = useEverywhere(replicas, (index) => shots[index], responses, { connections: 4 });
  await Promise.all(again.map(({ ended }) => ended));
  const outcomes = [...responses.ofProof.values()];
  const admitted = [...responses.with(200)];
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
    `${outcomes.length} proofs, ${admitted.length} admitted; recovered after ${millis.toFixed(0)} ms`,
  );
}

describe('three replicas that share a store', () => {
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
    const responses = new Responses();
    const loads = useEverywhere(replicas, (index) => shots[index], responses, { connections: 8 });
    await Promise.all(loads.map(({ ended }) => ended));
    const outcomes = [...responses.ofProof.values()].map((statuses) => statuses.sort().join(' '));
    assert.deepEqual([outcomes.length, new Set(outcomes)], [1_000, new Set(['200 401 401'])]);
    assert.equal(await replicas.recorded(shots.map(({ kind }) => kind)), 1_000);
  });

  const name = (what: string) =>
    named(`admit no proof twice and none unrecorded when the store ${what}, and lose no Bearer request`);

  test(name('is killed and starts again'), options, (t) =>
    survive(
      t,
      ({ redis }) => redis.kill(),
      ({ redis }) => redis.start(),
    ),
  );

  test(name('is stopped by a signal and continues'), options, (t) =>
    survive(
      t,
      ({ redis }) => redis.signal('SIGSTOP'),
      ({ redis }) => redis.signal('SIGCONT'),
    ),
  );

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
    await recover(replicas, 1);
    for (const { logs, errors } of services) {
      assert.doesNotMatch(JSON.stringify(logs) + errors(), /redis:|p@ss|p%40ss/);
    }
  });
});
