/* How the process ends: signals, readiness meanwhile, exit codes (docs/deploy.md). */
import { strict as assert } from 'node:assert';
import { once } from 'node:events';
import { describe, test, type TestContext } from 'node:test';
import { REFUSALS } from '../../src/verify/base/refusal.ts';
import { startProvider } from '../idp/provider.ts';
import { openWire } from '../support/client.ts';
import { statusesIn } from '../support/raw-responses.ts';
import { providerSettings, runProcess, type TestProcess } from '../support/process.ts';
import { programOf } from './program.ts';

/** Their lines are longer than pipes on both sides take, and shorter than the log keeps. */
const REQUESTS = 3_000;

const PUBLIC = 'GET /api/public HTTP/1.1\r\nHost: api.test\r\n\r\n';
const HEALTH = 'GET /healthz HTTP/1.1\r\nHost: api.test\r\n\r\n';

/** The log lines about the end; others may come at any time. */
const reasons = ({ logs }: TestProcess) =>
  logs
    .filter(({ message }) => ['shutting down', 'stopped'].includes(message))
    .map(({ message, reason }) => [message, reason]);

describe('the process', { concurrency: 4 }, () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`exits with 0 after ${signal}, once idle and unused connections are closed`, async (t) => {
      const service = await runProcess(t);
      const [idle, unused, asking] = await Promise.all([
        openWire(service.port),
        openWire(service.port),
        openWire(service.port),
      ]);
      for (const wire of [idle, asking]) {
        wire.send(HEALTH);
        await wire.until((text) => text.endsWith('}'));
      }
      service.child.kill(signal);
      await service.logged('shutting down');
      asking.send(HEALTH);
      assert.match(
        await asking.untilClosed(),
        /Connection: keep-alive[^]*HTTP\/1\.1 200 OK[^]*Connection: close/,
      );
      assert.equal((await idle.untilClosed()).match(/HTTP/g)?.length, 1);
      assert.equal(await unused.untilClosed(), '');
      assert.equal(await service.exited, 0);
      assert.deepEqual(reasons(service), [
        ['shutting down', signal],
        ['stopped', 'drained'],
      ]);
    });
  }

  test('has no exit code after SIGHUP, which kills it', async (t) => {
    const service = await runProcess(t);
    service.child.kill('SIGHUP');
    assert.equal(await service.exited, null);
    assert.deepEqual([service.child.signalCode, reasons(service)], ['SIGHUP', []]);
  });

  test('is not ready after SIGTERM, but keeps serving for SHUTDOWN_DELAY_SECONDS', async (t) => {
    const provider = await startProvider();
    t.after(() => provider.stop());
    const service = await runProcess(t, {
      environment: { ...providerSettings(provider), SHUTDOWN_DELAY_SECONDS: '60' },
    });
    await service.logged('signing keys loaded');
    assert.equal((await service.ask('/readyz')).status, 200);
    service.child.kill('SIGTERM');
    await service.logged('shutting down');
    const { status, headers, body } = await service.ask('/readyz');
    assert.deepEqual(
      [status, body],
      [503, { error: 'temporarily_unavailable', message: REFUSALS.temporarily_unavailable['shutting-down'] }],
    );
    assert.equal(headers['retry-after'], '1');
    const wire = await openWire(service.port);
    for (let count = 1; count <= 30; count += 1) {
      assert.equal((await service.ask('/api/private', { token: provider.issue() })).status, 200);
      wire.send(HEALTH);
      const received = await wire.until((text) => statusesIn(text).length === count);
      assert.ok(received.endsWith('Connection: keep-alive\r\nKeep-Alive: timeout=72\r\n\r\n{"status":"ok"}'));
    }
    wire.destroy();
    service.child.kill('SIGTERM');
    assert.equal(await service.exited, 1);
  });

  test('exits with 0 after SIGTERM, once SHUTDOWN_DELAY_SECONDS have passed', async (t) => {
    const service = await runProcess(t, { environment: { SHUTDOWN_DELAY_SECONDS: '1' } });
    service.child.kill('SIGTERM');
    assert.equal(await service.exited, 0);
  });

  test('exits with 0 without waiting for keys that are being fetched', async (t) => {
    const provider = await startProvider();
    t.after(() => provider.stop());
    await provider.fault('all', 'hang-before-headers');
    const service = await runProcess(t, { environment: providerSettings(provider) });
    while (provider.openSockets === 0) await new Promise(setImmediate);
    service.child.kill('SIGTERM');
    assert.equal(await service.exited, 0);
    assert.deepEqual(
      service.logs.filter(({ message }) => message === 'signing keys could not be fetched'),
      [],
    );
  });

  /** Has logged more than a pipe takes, none of which was read, and has closed its last connection. */
  async function drainUnread(t: TestContext) {
    const service = await runProcess(t, { environment: { ACCESS_LOG: 'true', PROFILE: 'A' } });
    service.child.stdout!.pause();
    const wire = await openWire(service.port);
    wire.send(PUBLIC.repeat(REQUESTS));
    await wire.until((text) => text.split('endpoint!"}').length > REQUESTS);
    service.child.kill('SIGTERM');
    await wire.untilClosed();
    return service;
  }

  test('waits at its end for a reader of its log that is late', async (t) => {
    const service = await drainUnread(t);
    service.child.stdout!.resume();
    assert.equal(await service.exited, 0);
    assert.equal(service.logs.filter(({ message }) => message === 'request').length, REQUESTS);
    assert.equal(service.logs.at(-1)?.message, 'stopped');
  });

  test('waits at its end for the lines of its last turn, too', async (t) => {
    const text = `
      const { jsonLog } = await import('gatehouse-http/log');
      const gate = createGate({ domain: '127.0.0.1:1', audience: 'x', log: jsonLog({ level: 'debug' }) });
      async function onStop() {
        const request = new Request('http://api.test/');
        for (let count = 0; count < ${REQUESTS}; count += 1) await gate.check(request, gatehouse.authenticated);
        console.error('turn');
      }
      await runService({ routes: [] }, { onStop });`;
    const service = await runProcess(t, { program: programOf(t, text) });
    service.child.stdout!.pause();
    const told = once(service.child.stderr!, 'data');
    service.child.kill('SIGTERM');
    await told;
    service.child.stdout!.resume();
    assert.equal(await service.exited, 0);
    assert.equal(service.logs.filter(({ message }) => message === 'request refused').length, REQUESTS);
    assert.equal(service.logs.at(-1)?.message, 'stopped');
  });

  test('exits with 0 after a drain although nothing reads its log', async (t) => {
    const { child } = await drainUnread(t);
    assert.deepEqual(await once(child, 'exit'), [0, null]);
    child.stdout!.destroy();
  });

  for (const [first, second] of [
    ['SIGTERM', 'SIGTERM'],
    ['SIGINT', 'SIGINT'],
    ['SIGTERM', 'SIGINT'],
    ['SIGINT', 'SIGTERM'],
  ] as const) {
    test(`exits with 1 at once when ${second} follows ${first}, whatever is running`, async (t) => {
      const service = await runProcess(t);
      const wire = await openWire(service.port);
      wire.send('GET /healthz HTTP/1.1\r\n');
      await service.ask('/nowhere');
      service.child.kill(first);
      await service.logged('shutting down');
      service.child.kill(second);
      assert.equal(await service.exited, 1);
      assert.deepEqual(reasons(service), [
        ['shutting down', first],
        ['stopped', 'second-signal'],
      ]);
      assert.equal(service.logs.at(-2)?.message, 'requests refused');
      assert.equal(await wire.untilClosed(), '');
    });
  }
});
