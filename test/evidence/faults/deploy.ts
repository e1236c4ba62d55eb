/* The end of a process under load: it first reports that it is not ready, loses no request, and has the right
   exit code, even as process 1 (docs/deploy.md). */
import { strict as assert } from 'node:assert';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout as pass } from 'node:timers/promises';
import { openWire } from '../../support/client.ts';
import { figures } from '../../support/figures.ts';
import { startLoad, type Load, type LoadPlan, type Tally } from '../../support/load.ts';
import { startProcess } from '../../support/process.ts';
import { until } from '../../support/watch.ts';
import {
  addKey,
  openFixture,
  privately,
  validShots,
  type ProcessFixture,
} from '../../faults/process-fixture.ts';

const rows = figures('deploys');
let requests = 0;

/** How a load balancer notices: two failed checks of readiness, half a second apart. */
async function watchReadiness({ service }: ProcessFixture): Promise<{ readiness: number; seconds: number }> {
  const start = performance.now();
  let last = 0;
  for (let failures = 0; failures < 2; await pass(500)) {
    last = await service.ask('/readyz').then(
      ({ status }) => status,
      () => 0,
    );
    if (last !== 200) failures += 1;
  }
  return { readiness: last, seconds: (performance.now() - start) / 1000 };
}

interface Ended {
  readonly tally: Tally;
  readonly code: number | null;
  readonly seconds: number;
  readonly readiness: number | string;
}

/** Sends SIGTERM under load. With a delay, clients open new connections until the balancer has noticed. */
async function endUnderLoad(
  fixture: ProcessFixture,
  delaySeconds: number,
  plan: Partial<LoadPlan>,
  justBefore = () => {},
): Promise<Ended> {
  const { service } = fixture;
  let isBalanced = true;
  const reconnects = () => isBalanced && (delaySeconds > 0 || service.child.exitCode === null);
  const load: Load = startLoad({
    port: service.port,
    connections: 16,
    next: validShots(fixture.provider),
    reconnects,
    ...plan,
  });
  await until('the load is running', () => load.tally.answered > 1_000, 20);
  const start = performance.now();
  // Without a delay, nobody may connect any more.
  if (delaySeconds === 0) isBalanced = false;
  justBefore();
  service.child.kill('SIGTERM');
  await service.logged('shutting down');
  let readiness: number | string = 'not asked';
  if (delaySeconds > 0) {
    const before = load.tally.answered;
    ({ readiness } = await watchReadiness(fixture));
    isBalanced = false;
    assert.ok(load.tally.answered > before, 'it serves during the delay');
  }
  const code = await service.exited;
  await load.ended;
  return { tally: load.tally, code, seconds: (performance.now() - start) / 1000, readiness };
}

function note(name: string, { tally, code, seconds, readiness }: Ended): void {
  requests += tally.sent;
  rows.push({
    run: name,
    sent: tally.sent,
    answered: tally.answered,
    'not 200': tally.countExcept('valid 200'),
    lost: tally.lost,
    'lost after close': tally.lostAfterClose,
    'closed idle': tally.closedIdle,
    'connections refused': tally.refusedConnections,
    readiness,
    'exit code': code ?? 'none',
    'exit after s': seconds,
  });
}

describe('the process under load', { timeout: 240_000 }, () => {
  for (const [delaySeconds, runs, what, plan] of [
    [0, 4, '', {}],
    [2, 4, '', {}],
    [0, 2, ', slow clients', { connections: 200, pauseMillis: 150 }],
    [0, 2, ', pipelined', { depth: 4 }],
  ] as const) {
    test(`loses no request on SIGTERM when SHUTDOWN_DELAY_SECONDS is ${delaySeconds}${what}`, async (t) => {
      for (let run = 1; run <= runs; run += 1) {
        const fixture = await openFixture(t, {
          environment: { SHUTDOWN_DELAY_SECONDS: String(delaySeconds) },
        });
        const ended = await endUnderLoad(fixture, delaySeconds, plan);
        note(`delay ${delaySeconds}${what}, ${run}`, ended);
        const { tally, code, readiness } = ended;
        assert.deepEqual([tally.except('valid 200'), tally.lost, code], [{}, 0, 0]);
        if (!('depth' in plan)) assert.equal(tally.lostAfterClose, 0);
        if (delaySeconds > 0) assert.equal(readiness, 503);
        assert.deepEqual(fixture.service.logs.at(-1)?.reason, 'drained');
      }
    });
  }

  test('ends within ten seconds, and loses no request, with a stuck client', async (t) => {
    const fixture = await openFixture(t);
    const wire = await openWire(fixture.service.port);
    // Not sooner, or the ten seconds for header fields would end first.
    const ended = await endUnderLoad(fixture, 0, {}, () => wire.send('GET /healthz HTTP/1.1\r\nHost: api'));
    note('delay 0, stuck client', ended);
    assert.deepEqual([ended.tally.lost, ended.code, fixture.service.logs.at(-1)?.reason], [0, 0, 'deadline']);
    const timeOf = async (message: string) => Date.parse((await fixture.service.logged(message)).time);
    const seconds = ((await timeOf('stopped')) - (await timeOf('shutting down'))) / 1000;
    assert.ok(seconds < 11, `ended after ${seconds} s`);
  });

  test('answers the request that waits for keys, and ends then', async (t) => {
    const fixture = await openFixture(t);
    const { provider, service } = fixture;
    const token = addKey(provider, 'rotated in');
    await provider.fault('keySet', { delayMillis: 2_500 });
    provider.resetCounts();
    const response = privately(fixture, token);
    await until('the keys are being fetched', () => provider.counts.keySet > 0, 10);
    service.child.kill('SIGTERM');
    const { status, headers } = await response;
    assert.deepEqual([status, headers.connection, await service.exited], [200, 'close', 0]);
  });

  test('exits with 1 on the second signal, in the midst of the load', async (t) => {
    const fixture = await openFixture(t, { environment: { SHUTDOWN_DELAY_SECONDS: '60' } });
    const load = startLoad({
      port: fixture.service.port,
      connections: 8,
      next: validShots(fixture.provider),
    });
    await until('the load is running', () => load.tally.answered > 500, 20);
    fixture.service.child.kill('SIGTERM');
    await fixture.service.logged('shutting down');
    fixture.service.child.kill('SIGTERM');
    assert.equal(await fixture.service.exited, 1);
    await load.ended;
  });

  test('exits with 2 when its port is in use, and leaves the other process alone', async (t) => {
    const fixture = await openFixture(t);
    const second = await startProcess({
      environment: { IDP_DOMAIN: 'localhost:1', IDP_AUDIENCE: 'a', PORT: String(fixture.service.port) },
    });
    t.after(() => second.stop());
    assert.equal(await second.exited, 2);
    assert.equal((await fixture.service.ask('/healthz')).status, 200);
  });

  test('ends as process 1 as it does elsewhere', (t) => asProcessOne(t));

  test('was asked at least ten thousand times', () => {
    rows.push({ run: 'all', sent: requests });
    assert.ok(requests >= 10_000);
  });
});

const UNSHARE = ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child'];

async function asProcessOne(t: TestContext): Promise<void> {
  const [program, ...words] = UNSHARE.concat('true');
  if (spawnSync(program!, words).status !== 0) {
    rows.push({ run: 'as process 1: unshare is not to be had here' });
    return;
  }
  const fixture = await openFixture(t, { through: UNSHARE });
  const pid = Number(readFileSync(`/proc/${fixture.pid}/task/${fixture.pid}/children`, 'utf8'));
  assert.match(readFileSync(`/proc/${pid}/status`, 'utf8'), /^NSpid:.*\t1$/m);
  // Signals go to the service itself; its runner passes none on.
  const child = { kill: (signal: NodeJS.Signals) => process.kill(pid, signal), exitCode: null };
  const service = { ...fixture.service, child: child as unknown as typeof fixture.service.child };
  const ended = await endUnderLoad({ ...fixture, service }, 0, {});
  note('as process 1', ended);
  assert.deepEqual([ended.tally.except('valid 200'), ended.tally.lost, ended.code], [{}, 0, 0]);
}
