/* The listener for metrics: its responses, its limits, and when it listens. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import type { Server } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { createService, get, open } from '../../../src/gatehouse.ts';
import { createMetrics } from '../../../src/metrics.ts';
import { createMetricsListener } from '../../../src/options/metrics/metrics-listener.ts';
import { makeIssuer } from '../../support/issuer.ts';
import { exchange, openWire } from '../../support/client.ts';
import { TestClock } from '../../support/clock.ts';
import { readExposition } from '../../support/exposition.ts';
import { freePort } from '../../support/free-port.ts';
import { responsesIn, statusesIn } from '../../support/raw-responses.ts';
import { runProcess } from '../../support/process.ts';

const askFor = (target: string, method = 'GET') => `${method} ${target} HTTP/1.1\r\nHost: a\r\n\r\n`;

const SCRAPE = askFor('/metrics');

async function listening(t: TestContext) {
  const clock = new TestClock();
  let reads = 0;

  const readText = () => {
    reads += 1;
    return `read ${reads}\n`;
  };

  const server = createMetricsListener(readText, clock);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { server, clock, port: (server.address() as AddressInfo).port, reads: () => reads };
}

test('answers one request of a connection, and computes nothing for those behind it', async (t) => {
  const { port, reads } = await listening(t);
  for (const one of [SCRAPE, SCRAPE.replace('1.1\r\n', '1.0\r\nConnection: keep-alive\r\n')]) {
    const before = reads();
    const received = await exchange(port, one.repeat(1_000));
    assert.deepEqual(
      received.match(/^HTTP.*/gm)?.map((line) => line.slice(0, 12)),
      ['HTTP/1.1 200'],
    );
    assert.equal(reads(), before + 1);
  }
});

test('answers GET and HEAD of /metrics, whatever the query, and ends the connection', async (t) => {
  const { port } = await listening(t);
  for (const target of ['/metrics', '/metrics?name[]=x', '/metrics?']) {
    const [response] = responsesIn(await exchange(port, askFor(target)));
    const { status, text, fields } = response ?? assert.fail();
    assert.equal(status, 200);
    assert.match(text, /^read \d\n$/);
    assert.equal(fields.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
    assert.equal(fields.get('connection'), 'close');
  }
  const head = await exchange(port, askFor('/metrics', 'HEAD'));
  assert.match(head, /^HTTP\/1\.1 200 /);
  assert.ok(head.endsWith('\r\n\r\n'));
});

test('answers 404 without content to any other path or method, and measures nothing for it', async (t) => {
  const { port, reads } = await listening(t);
  const others = ['/', '/metric', '/metrics/', '/metricsx', '/x/metrics', '//metrics', '/healthz'];
  const requests = [...others.map((target) => askFor(target)), askFor('/metrics', 'POST')];
  for (const request of requests) {
    const responses = responsesIn(await exchange(port, request));
    assert.deepEqual(
      responses.map(({ status, text }) => [status, text]),
      [[404, '']],
    );
  }
  assert.equal(reads(), 0);
});

/** A connection that the server has accepted. */
async function connectTo({ server, port }: { server: Server; port: number }) {
  const connection = once(server, 'connection');
  const wire = await openWire(port);
  await connection;
  return wire;
}

test('ends a connection after five seconds, whatever arrives on it', async (t) => {
  const listener = await listening(t);
  const silent = await connectTo(listener);
  const slow = await connectTo(listener);
  slow.send('GET /metrics HTTP/1.1\r\nHost: a\r\n');
  listener.clock.advance(4_999);
  await new Promise(setImmediate);
  assert.deepEqual([silent.socket.closed, slow.socket.closed], [false, false]);
  listener.clock.advance(1);
  await Promise.all([silent.untilClosed(), slow.untilClosed()]);
  assert.deepEqual(listener.clock.pending, []);
});

test('keeps no timer for a connection that is gone', async (t) => {
  const { server, clock, port } = await listening(t);
  const accepted = once(server, 'connection');
  const wire = await openWire(port);
  const [socket] = await accepted;
  assert.deepEqual(clock.pending, [5_000]);
  const closed = once(socket, 'close');
  wire.destroy();
  await closed;
  assert.deepEqual(clock.pending, []);
});

test('accepts at most twenty connections at a time', async (t) => {
  const listener = await listening(t);
  const wires = [];
  for (let index = 0; index < 20; index += 1) wires.push(await connectTo(listener));
  assert.equal(await exchange(listener.port, SCRAPE).catch(() => ''), '');
  listener.clock.advance(5_000);
  await Promise.all(wires.map((wire) => wire.untilClosed()));
  assert.deepEqual(statusesIn(await exchange(listener.port, SCRAPE)), [200]);
});

const issuer = makeIssuer();

interface Ports {
  readonly port: number;
  readonly metricsPort: number;
  readonly host?: string;
  readonly metricsHost?: string;
}

const serviceOn = ({ metricsPort, metricsHost, ...settings }: Ports) =>
  createService(
    { routes: [get('/a', open, () => ({}))] },
    {
      ...issuer.options,
      host: '127.0.0.1',
      ...settings,
      metrics: createMetrics({ port: metricsPort, host: metricsHost }),
    },
  );

/** A port that is taken, and one that is free. */
async function ports(t: TestContext) {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  t.after(() => taken.close());
  return { taken: (taken.address() as AddressInfo).port, free: await freePort() };
}

/** An address that no machine has (RFC 5737 §3). */
const NOWHERE = '192.0.2.1';

test('listens for metrics on METRICS_HOST, or by default on the host of the service', async (t) => {
  const { free } = await ports(t);
  for (const settings of [{ metricsHost: NOWHERE }, { host: NOWHERE }]) {
    const service = serviceOn({ port: 0, metricsPort: free, ...settings });
    await assert.rejects(service.listen(), { code: 'EADDRNOTAVAIL', host: NOWHERE, port: free });
    await service.stop().catch(() => {});
  }
});

const isHeard = async (port: number) => {
  try {
    (await openWire(port)).destroy();
    return true;
  } catch {
    return false;
  }
};

test('an embedded service listens on both ports, and releases both', async (t) => {
  const { free } = await ports(t);
  const service = serviceOn({ port: 0, metricsPort: free });
  await service.listen();
  assert.ok(readExposition((await exchange(free, SCRAPE)).split('\r\n\r\n')[1] ?? '').size > 10);
  await service.stop();
  assert.equal(await isHeard(free), false);
});

test(
  'an embedded service that stops closes the connections of metrics collectors',
  { timeout: 60_000 },
  async (t) => {
    const { free } = await ports(t);
    const service = serviceOn({ port: 0, metricsPort: free });
    await service.listen();
    // The five-second limit of a connection must not end it here.
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const wire = await openWire(free);
    wire.send('GET /metrics HTTP/1.1\r\n');
    assert.equal(await service.stop(), 'drained');
    await wire.untilClosed();
  },
);

test('an embedded service that stops serves its metrics until its last response [§16]', async (t) => {
  const { free } = await ports(t);
  const calls = new EventEmitter();
  const held = () => new Promise<object>((resolve) => calls.emit('call', () => resolve({})));
  const metrics = createMetrics({ port: free });
  const settings = { ...issuer.options, host: '127.0.0.1', port: 0, metrics };
  const service = createService({ routes: [get('/held', open, held)] }, settings);
  const { port, origin } = new URL(await service.listen());
  const called = once(calls, 'call');
  const asked = fetch(`${origin}/held`);
  const [answer] = await called;
  const stopped = service.stop();
  while (await isHeard(Number(port)));
  assert.deepEqual(statusesIn(await exchange(free, SCRAPE)), [200]);
  answer();
  await (await asked).json();
  assert.equal(await stopped, 'drained');
});

test('listens on neither port when one is taken', async (t) => {
  const { taken, free } = await ports(t);
  for (const settings of [
    { port: free, metricsPort: taken },
    { port: taken, metricsPort: free },
  ]) {
    const service = serviceOn(settings);
    await assert.rejects(service.listen(), { code: 'EADDRINUSE', port: taken });
    assert.equal(await isHeard(free), false);
    await service.stop().catch(() => {});
  }
});

test('a process exits with 2 when the port for metrics is taken, and names it', async (t) => {
  const { taken } = await ports(t);
  const environment = { HOST: '127.0.0.1', METRICS_PORT: `${taken}` };
  const service = await runProcess(t, { environment });
  assert.equal(await service.exited, 2);
  assert.match(
    service.errors(),
    new RegExp(`^cannot listen: 127\\.0\\.0\\.1, port ${taken} \\(EADDRINUSE\\); set .*METRICS_PORT`, 'm'),
  );
  assert.ok(!service.logs.some(({ message }) => message === 'listening'));
});

test('a process logs its port for metrics, does not count requests there, and serves it while it drains', async (t) => {
  const environment = {
    HOST: '127.0.0.1',
    METRICS_PORT: '0',
    SHUTDOWN_DELAY_SECONDS: '1',
    LOG_LEVEL: 'debug',
  };
  const service = await runProcess(t, { environment });
  const { metricsPort } = await service.logged('listening');

  const scrape = async () => readExposition((await exchange(metricsPort, SCRAPE)).split('\r\n\r\n')[1] ?? '');

  const sumOf = (families: Awaited<ReturnType<typeof scrape>>) =>
    [...(families.get('http_server_request_duration_seconds')?.samples ?? [])]
      .filter(([name]) => name.includes('_count{'))
      .reduce((sum, [, count]) => sum + count, 0);

  await scrape();
  assert.equal(sumOf(await scrape()), 0);
  await service.ask('/healthz');
  assert.equal(sumOf(await scrape()), 1);
  service.child.kill('SIGTERM');
  await service.logged('shutting down');
  assert.equal((await scrape()).get('gatehouse_info')?.samples.size, 1);
  assert.equal(await service.exited, 0);
});

test('a process without a port for metrics logs none', async (t) => {
  const service = await runProcess(t, { environment: { HOST: '127.0.0.1' } });
  assert.equal('metricsPort' in (await service.logged('listening')), false);
});
