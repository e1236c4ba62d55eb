/* The metrics, compared with the traffic that was sent. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { readFileSync } from 'node:fs';
import { test, type TestContext } from 'node:test';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { FETCH_ERROR_REASONS } from '../../../src/verify/base/events.ts';
import { REFUSALS } from '../../../src/verify/base/refusal.ts';
import {
  createGate,
  createService,
  fail,
  get,
  needs,
  open,
  post,
  scope,
  type ServiceOptions,
} from '../../../src/gatehouse.ts';
import { LocalReplayStore, type ReplayStore } from '../../../src/verify/dpop/replay.ts';
import { createMetrics } from '../../../src/options/metrics/metrics-listener.ts';
import { cors } from '../../../src/cors.ts';
import { resourceMetadata } from '../../../src/resource-metadata.ts';
import { redisReplayStore } from '../../../src/options/redis/replay.ts';
import type { Metrics, Revocations } from '../../../src/gate/options.ts';
import { Part } from '../../../src/verify/base/option.ts';
import type { Issuer } from '../../../src/verify/token/verify.ts';
import { createProof, createProofKey } from '../../../src/testing.ts';
import { makeIssuer } from '../../support/issuer.ts';
import { ask, exchange, openWire } from '../../support/client.ts';
import { readExposition } from '../../support/exposition.ts';

const issuer = makeIssuer();

const ROOT = new URL('../../../', import.meta.url);

const DURATION = 'http_server_request_duration_seconds';

const routes = [
  get('/orders/{id}', needs(scope('read:orders')), () => ({})),
  get('/open', open, () => ({})),
  get('/missing', open, () => fail(404, 'not_found', 'None')),
  get('/bug', open, () => Promise.reject(new Error('secret'))),
  get('/"quoted\\', open, () => ({})),
  post('/orders', open, () => ({})),
];

async function start(
  t: TestContext,
  settings: Partial<ServiceOptions> = {},
  fetchKeys: ServiceOptions['fetchKeys'] = issuer.options.fetchKeys,
) {
  const metrics = createMetrics();
  const given = { ...issuer.options, host: '127.0.0.1', port: 0, metrics, fetchKeys, ...settings };
  const service = createService({ routes }, given);
  const url = await service.listen();
  t.after(() => service.stop());
  const port = Number(new URL(url).port);
  const all = () => readExposition(metrics.text());

  /** The value of a sample. Throws for a missing one, since every sample must be there from the start. */
  const value = (sample: string) => {
    const [name = ''] = sample.split('{');
    const family = [...all()].find(([key]) => name === key || name.startsWith(`${key}_`));
    return family?.[1].samples.get(sample);
  };

  /** The number of responses. */
  const responses = (labels: string) => value(`${DURATION}_count{${labels}}`);
  return { metrics, url, port, all, value, responses };
}

const labelsOf = (route: string | undefined, method: string, status: number) =>
  `${route === undefined ? '' : `http_route="${route}",`}http_request_method="${method}",http_response_status_code="${status}"`;

test('has every family from the start, and every foreseeable series at zero', async (t) => {
  const { all, value } = await start(t, {}, () => new Promise(() => {}));
  const families = all();
  assert.deepEqual([...families].map(([name, { type }]) => `${name} ${type}`).sort(), [
    'gatehouse_decisions_total counter',
    'gatehouse_info gauge',
    'gatehouse_key_fetches_total counter',
    'gatehouse_keys_age_seconds gauge',
    'gatehouse_keys_usable gauge',
    'gatehouse_refusals_total counter',
    'gatehouse_replay_entries gauge',
    'gatehouse_replay_proofs_total counter',
    'gatehouse_tokens_total counter',
    'http_server_active_requests gauge',
    'http_server_request_duration_seconds histogram',
    'nodejs_eventloop_lag_p99_seconds gauge',
    'nodejs_heap_size_total_bytes gauge',
    'nodejs_heap_size_used_bytes gauge',
    'process_cpu_seconds_total counter',
    'process_resident_memory_bytes gauge',
    'process_start_time_seconds gauge',
  ]);
  const reasons = [...Object.values(REFUSALS).flatMap((sentences) => Object.keys(sentences))];

  const wordsOf = (name: string, label: string) =>
    [...(families.get(name)?.samples ?? [])].map(([sample, count]) => {
      assert.equal(count, 0, sample);
      return new RegExp(`${label}="([^"]*)"\\}$`).exec(sample)?.[1];
    });

  assert.deepEqual(wordsOf('gatehouse_refusals_total', 'reason').sort(), reasons.sort());
  assert.deepEqual(wordsOf('gatehouse_tokens_total', 'result'), ['remembered', 'verified']);
  assert.deepEqual(wordsOf('gatehouse_replay_proofs_total', 'result'), [
    'new',
    'seen',
    'full',
    'unavailable',
  ]);
  assert.deepEqual(wordsOf('gatehouse_decisions_total', 'result'), ['allowed', 'refused', 'failed']);
  assert.deepEqual(wordsOf('gatehouse_key_fetches_total', 'result'), ['ok', ...FETCH_ERROR_REASONS]);
  assert.equal(value('gatehouse_key_fetches_total{issuer="idp",result="ok"}'), 0);

  const counts = [...(families.get(DURATION)?.samples ?? [])].filter(([name]) => name.includes('_count{'));
  assert.deepEqual(
    counts.map(([name, count]) => `${name.slice(name.indexOf('{') + 1, -1)} ${count}`).sort(),
    [...routes.map(({ method, pattern }) => [method, pattern]), ['GET', '/healthz'], ['GET', '/readyz']]
      .flatMap(([method = '', pattern = '']) =>
        (method === 'GET' ? ['GET', 'HEAD'] : [method]).flatMap((each) =>
          // An alert sees the first 500 only if the series existed before (docs/rules.yml).
          (each === 'POST' ? [200, 201, 204, 500] : [200, 500]).map(
            (status) => `${labelsOf(pattern.replace(/["\\]/g, '\\$&'), each, status)} 0`,
          ),
        ),
      )
      .sort(),
  );
});

test('counts responses by method, route and status, with their seconds, but not by path', async (t) => {
  const { port, responses, all, value } = await start(t);
  const token = issuer.token({ scope: 'read:orders' });
  for (const id of ['one', 'two']) await ask(port, `/orders/${id}?secret`, { token });
  await ask(port, '/orders/one', { token, method: 'HEAD' });
  await ask(port, '/orders/one', { method: 'PURGE' });
  await ask(port, '/orders/one', { method: 'PATCH' });
  await ask(port, '/orders/one');
  await ask(port, '/missing');
  await ask(port, '/bug');
  await ask(port, '/%22quoted%5C');
  await ask(port, '/healthz');
  assert.equal(responses(labelsOf('/orders/{id}', 'GET', 200)), 2);
  assert.equal(responses(labelsOf('/orders/{id}', 'HEAD', 200)), 1);
  assert.equal(responses(labelsOf('/orders/{id}', 'GET', 401)), 1);
  assert.equal(responses(labelsOf(undefined, '_OTHER', 405)), 1);
  assert.equal(responses(labelsOf(undefined, 'PATCH', 405)), 1);
  assert.equal(responses(labelsOf('/missing', 'GET', 404)), 1);
  assert.equal(responses(labelsOf('/bug', 'GET', 500)), 1);
  assert.equal(responses(labelsOf('/\\"quoted\\\\', 'GET', 200)), 1);
  assert.equal(responses(labelsOf('/healthz', 'GET', 200)), 1);
  const seconds = value(`${DURATION}_sum{${labelsOf('/orders/{id}', 'GET', 200)}}`) ?? 0;
  assert.ok(seconds > 0 && seconds < 10, `${seconds} s`);
  assert.ok(![...all()].some(([, { samples }]) => /one|secret|PURGE/.test([...samples.keys()].join())));
});

test('counts preflights and requests for the metadata as requests without a route', async (t) => {
  const settings = {
    cors: cors({ origins: ['https://app.test'] }),
    metadata: resourceMetadata({ url: 'https://api.test' }),
  };
  const { port, responses } = await start(t, settings);
  const headers = { Origin: 'https://app.test', 'Access-Control-Request-Method': 'GET' };
  await ask(port, '/open', { method: 'OPTIONS', headers });
  await ask(port, '/.well-known/oauth-protected-resource');
  assert.equal(responses(labelsOf(undefined, 'OPTIONS', 204)), 1);
  assert.equal(responses(labelsOf(undefined, 'GET', 200)), 1);
});

test('has the bucket boundaries of OpenTelemetry', async (t) => {
  const { all } = await start(t);
  const labels = labelsOf('/open', 'GET', 200);
  const names = [...(all().get(DURATION)?.samples.keys() ?? [])].filter((name) => name.includes(labels));
  const bounds = names.flatMap((name) => /le="([^"]+)"/.exec(name)?.[1] ?? []);
  assert.equal(bounds.join(' '), '0.005 0.01 0.025 0.05 0.075 0.1 0.25 0.5 0.75 1 2.5 5 7.5 10 +Inf');
});

test('counts a duration in every bucket that it does not exceed, and in the sum', () => {
  const metrics = createMetrics();
  const { meter } = Part.contentOf(metrics);
  for (const seconds of [0.005, 0.0051, 0.3, 11]) meter.requestEnded('GET', '/a', 200, seconds);
  const { samples = [] } = readExposition(metrics.text()).get(DURATION) ?? {};
  assert.deepEqual(
    [...samples].map(([name, value]) => `${/le="[^"]+"|sum|count/.exec(name)} ${value}`),
    [
      ...['0.005" 1', '0.01" 2', '0.025" 2', '0.05" 2', '0.075" 2', '0.1" 2', '0.25" 2', '0.5" 3'],
      ...['0.75" 3', '1" 3', '2.5" 3', '5" 3', '7.5" 3', '10" 3', '+Inf" 4'],
    ]
      .map((bucket) => `le="${bucket}`)
      .concat('count 4', 'sum 11.3101'),
  );
});

test('lists a sample in its own family only, whatever its labels hold', () => {
  const metrics = createMetrics();
  Part.contentOf(metrics).meter.requestEnded('GET', '/gatehouse_info', 200, 1);
  const text = metrics.text();
  assert.equal(text.match(/^http_server_request_duration_seconds_count/gm)?.length, 1);
});

test('serve any number of gates without a port, and one service with a port [§11]', () => {
  for (const [metrics, isTaken] of [
    [createMetrics(), false],
    [createMetrics({ port: 9464 }), true],
  ] as const) {
    Part.use({ metrics });
    assert.equal(Part.isTaken(metrics), isTaken);
  }
});

test('counts the requests that are under way, and foresees what may come of introspection and revocations', () => {
  const metrics = createMetrics();
  const { meter, watch } = Part.contentOf(metrics);
  for (let count = 0; count < 3; count += 1) meter.requestBegan();
  meter.requestEnded(undefined, undefined, null, 0);
  const keys = { ageMillis: () => 0, usable: () => 1 };
  const issuers = [{ name: 'a', keys, introspect: {} }] as unknown as Issuer[];
  const store = { revocations: { isUp: () => true }, replayStore: new LocalReplayStore(60) };
  watch({ name: 'x', issuers, ...store, routes: [], ownRoutes: [] } as never);
  const lines = metrics.text().split('\n');
  for (const line of [
    'http_server_active_requests 2',
    ...['clear', 'revoked', 'unavailable'].map(
      (one) => `gatehouse_revocation_checks_total{result="${one}"} 0`,
    ),
    ...['active', 'inactive', 'failed', 'shed'].map(
      (one) => `gatehouse_introspections_total{issuer="a",result="${one}"} 0`,
    ),
    'gatehouse_tokens_total{result="introspected"} 0',
  ]) {
    assert.ok(lines.includes(line), line);
  }
});

test('keeps what it has counted when another gate begins to share it, since a counter never falls [§11]', () => {
  const metrics = createMetrics();
  const { count, watch } = Part.contentOf(metrics);
  const watched = {
    name: 'x',
    issuers: [],
    replayStore: new LocalReplayStore(60),
    routes: [],
    ownRoutes: [],
  };
  watch(watched);
  count('token', 'verified');
  watch(watched);
  assert.ok(metrics.text().includes('\ngatehouse_tokens_total{result="verified"} 1\n'));
});

test('keeps what it has counted of a service that stops, since a counter never falls [§11]', () => {
  const metrics = createMetrics();
  const { count, meter, watch } = Part.contentOf(metrics);
  const store = { replayStore: new LocalReplayStore(60) };
  const unwatch = watch({ name: 'x', issuers: [], ...store, routes: [], ownRoutes: [] });
  count('token', 'verified');
  meter.requestBegan();
  meter.requestEnded('GET', '/a', 200, 2);
  unwatch();
  assert.ok(metrics.text().includes('\ngatehouse_tokens_total{result="verified"} 1\n'));
  assert.match(metrics.text(), /_seconds_sum\{http_route="\/a",.*\} 2\n/);
});

test('shows the age of keys in seconds', () => {
  const keys = { ageMillis: () => 90_000, usable: () => 2 };
  const metrics = createMetrics();
  const issuers = [{ name: 'a', keys }] as unknown as Issuer[];
  const watched = { name: 'x', issuers, replayStore: new LocalReplayStore(60), routes: [], ownRoutes: [] };
  const unwatch = Part.contentOf(metrics).watch(watched);
  const text = metrics.text();
  unwatch();
  assert.equal(
    readExposition(text)
      .get('gatehouse_keys_age_seconds')
      ?.samples.get('gatehouse_keys_age_seconds{issuer="a"}'),
    90,
  );
});

for (const order of ['first', 'last']) {
  test(`shows the worst of gates that share it, whichever is made ${order}, and the sum of their proofs [§11]`, () => {
    const metrics = createMetrics();
    const content = Part.contentOf<Metrics>(metrics);

    const storeWith = (state: object) =>
      ({ record: () => 'new', state: () => state }) as unknown as ReplayStore;

    const gateWith = (usable: number, age: number, isUp: boolean, entries: number) => {
      const keys = { usable: () => usable, ageMillis: () => age } as unknown as Issuer['keys'];
      const issuers = [{ name: 'idp', keys } as Issuer];
      const revocations = { isUp: () => isUp } as Revocations;
      const about = { name: 'gate', issuers, revocations, routes: [], ownRoutes: [] };
      return [{ entries }, { isUp }].map((state) => ({ ...about, replayStore: storeWith(state) }));
    };

    const both = [...gateWith(0, Infinity, false, 2), ...gateWith(3, 5_000, true, 1)];
    const unwatch = (order === 'first' ? both : both.reverse()).map((each) => content.watch(each));
    const shown = () => metrics.text().match(/^gatehouse_(?:keys_[au]|replay_[es]|revocation_s).*$/gm);
    const labels = '{issuer="idp"}';
    assert.deepEqual(shown(), [
      `gatehouse_keys_age_seconds${labels} +Inf`,
      `gatehouse_keys_usable${labels} 0`,
      'gatehouse_revocation_store_up 0',
      'gatehouse_replay_entries 3',
      'gatehouse_replay_store_up 0',
    ]);

    for (const end of unwatch) end();
    assert.equal(shown(), null);
  });
}

test('counts refusals by reason, but not probes or failures of handlers', async (t) => {
  const { port, value } = await start(t, {}, () => new Promise(() => {}));
  for (const path of ['/orders/a', '/orders/b', '/nothing', '/missing', '/bug', '/readyz']) {
    await ask(port, path);
  }
  assert.equal(value('gatehouse_refusals_total{reason="no-credentials"}'), 2);
  assert.equal(value('gatehouse_refusals_total{reason="not_found"}'), 1);
  await ask(port, '/readyz', { method: 'DELETE' });
  assert.equal(value('gatehouse_refusals_total{reason="keys-unavailable"}'), 0);
  assert.equal(value('gatehouse_refusals_total{reason="method_not_allowed"}'), 0);
});

test('counts malformed HTTP only as a refusal, and CONNECT as a request', async (t) => {
  const { port, value, responses, all } = await start(t);
  const before = [...(all().get(DURATION)?.samples ?? [])];
  await exchange(port, 'garbage\r\n\r\n');
  await exchange(port, `GET /open HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`);
  await exchange(port, `GET /open HTTP/1.1\r\nHost: a\r\n${'X: x\r\n'.repeat(201)}\r\n`);
  await exchange(port, 'GET /open HTTP/2.0\r\nHost: a\r\n\r\n');
  assert.equal(value('gatehouse_refusals_total{reason="malformed-http"}'), 2);
  assert.equal(value('gatehouse_refusals_total{reason="header_fields_too_large"}'), 2);
  assert.deepEqual([...(all().get(DURATION)?.samples ?? [])], before);
  await exchange(port, 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n');
  assert.equal(responses(labelsOf(undefined, 'CONNECT', 400)), 1);
  assert.equal(value('http_server_active_requests'), 0);
});

test('counts verified and cached tokens, and proofs by the verdict of the replay store', async (t) => {
  const { port, url, value } = await start(t);
  const token = issuer.token({ scope: 'read:orders' });
  for (let use = 0; use < 4; use += 1) await ask(port, '/orders/a', { token });
  // A token that is used once is not cached.
  assert.equal(value('gatehouse_tokens_total{result="verified"}'), 2);
  assert.equal(value('gatehouse_tokens_total{result="remembered"}'), 2);
  await ask(port, '/orders/a', { token: issuer.token({ exp: 1 }) });
  assert.equal(value('gatehouse_tokens_total{result="verified"}'), 2);

  const key = createProofKey();
  const bound = issuer.boundToken(key, { scope: 'read:orders' });
  const dpop = createProof(key, { method: 'GET', url: `${url}/orders/a` }, bound);
  const headers = { Authorization: `DPoP ${bound}`, DPoP: dpop };
  const statuses = [await ask(port, '/orders/a', { headers }), await ask(port, '/orders/a', { headers })];
  assert.deepEqual(
    statuses.map(({ status }) => status),
    [200, 401],
  );
  assert.equal(value('gatehouse_replay_proofs_total{result="new"}'), 1);
  assert.equal(value('gatehouse_replay_proofs_total{result="seen"}'), 1);
  assert.equal(value('gatehouse_replay_entries'), 1);
});

test('counts fetches of keys by issuer and result, and shows the age and number of keys', async (t) => {
  const { port, value } = await start(t);
  await ask(port, '/orders/a', { token: issuer.token() });
  assert.equal(value('gatehouse_key_fetches_total{issuer="idp",result="ok"}'), 1);
  assert.equal(value('gatehouse_keys_usable{issuer="idp"}'), 1);
  assert.ok((value('gatehouse_keys_age_seconds{issuer="idp"}') ?? 100) < 60);

  const without = await start(t, {}, () => Promise.reject(new Error('x')));
  await ask(without.port, '/orders/a', { token: issuer.token() });
  assert.equal(without.value('gatehouse_key_fetches_total{issuer="idp",result="unforeseen"}'), 1);
  assert.equal(without.value('gatehouse_keys_usable{issuer="idp"}'), 0);
  assert.match(without.metrics.text(), /^gatehouse_keys_age_seconds\{issuer="idp"\} \+Inf$/m);
});

test('shows whether a shared replay store is up, instead of its number of entries', async (t) => {
  const { all, value } = await start(t, { replayStore: redisReplayStore('redis://127.0.0.1:1') });
  assert.equal(value('gatehouse_replay_store_up'), 0);
  assert.equal(all().has('gatehouse_replay_entries'), false);
});

test('shows how many requests are in flight, and counts without a status a request whose client has left', async (t) => {
  const calls = new EventEmitter();
  const route = get('/held', open, ({ signal }) => {
    const gone = once(signal, 'abort');
    calls.emit('call', gone);
    return gone.then(() => ({}));
  });
  const metrics = createMetrics();
  const service = createService(
    { routes: [route] },
    { ...issuer.options, metrics, host: '127.0.0.1', port: 0 },
  );
  const port = Number(new URL(await service.listen()).port);
  t.after(() => service.stop());
  const call = once(calls, 'call');
  const wire = await openWire(port);
  wire.send('GET /held HTTP/1.1\r\nHost: a\r\n\r\n');
  const [gone] = await call;
  assert.match(metrics.text(), /^http_server_active_requests 1$/m);
  wire.socket.resetAndDestroy();
  await gone;
  await setImmediate();
  const text = metrics.text();
  assert.match(text, /^http_server_active_requests 0$/m);
  assert.deepEqual(text.match(/_count\{http_route="\/held".* 1$/gm), [
    '_count{http_route="/held",http_request_method="GET"} 1',
  ]);
});

test('adds no series, whatever paths, methods and tokens callers invent', async (t) => {
  const { port, all } = await start(t);
  const sizeOf = () => [...all().values()].reduce((sum, { samples }) => sum + samples.size, 0);
  const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PURGE', 'LINK'];

  async function flood(count: number): Promise<void> {
    for (let index = 0; index < count; index += 1) {
      const method = methods[index % methods.length] ?? 'GET';
      for (const path of [`/${Math.random()}`, `/orders/${Math.random()}?${Math.random()}`, '/open']) {
        await ask(port, path, { method, token: `${Math.random()}.${index}.x` });
      }
    }
  }

  await flood(methods.length);
  const before = sizeOf();
  await flood(50);
  assert.equal(sizeOf(), before);
});

test('names the version of the package and the profile', async (t) => {
  const { version } = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8'));
  const { value } = await start(t);
  assert.equal(value(`gatehouse_info{version="${version}",profile="own table"}`), 1);
});

test('has "gate" as the profile of a gate', (t) => {
  const metrics = createMetrics();
  const gate = createGate({ ...issuer.options, metrics });
  t.after(() => gate.close());
  assert.match(metrics.text(), /^gatehouse_info\{version="[^"]+",profile="gate"\} 1$/m);
});

test('shows the start time, the CPU time and the memory of the process', async (t) => {
  const { value } = await start(t);
  const started = value('process_start_time_seconds') ?? 0;
  assert.ok(Math.abs(started + process.uptime() - Date.now() / 1000) < 1);

  const secondsNow = () => Object.values(process.cpuUsage()).reduce((sum, micros) => sum + micros / 1e6, 0);

  const before = secondsNow();
  const seconds = value('process_cpu_seconds_total') ?? 0;
  assert.ok(before <= seconds && seconds <= secondsNow(), `${seconds} s`);
  const resident = value('process_resident_memory_bytes') ?? 0;
  const used = value('nodejs_heap_size_used_bytes') ?? 0;
  const held = value('nodejs_heap_size_total_bytes') ?? 0;
  assert.ok(2 ** 20 < used && used < held && held < resident && resident < 2 ** 32);
});

test('shows the other metrics while no file descriptor is left, which Node needs to learn the memory (on Linux, as built)', () => {
  const program = `
    const { openSync } = require('node:fs');
    const metrics = require('./dist/metrics.js').createMetrics();
    try {
      for (;;) openSync('/dev/null');
    } catch {}
    const text = metrics.text();
    process.stdout.write(text);`;
  const words = ['-c', 'ulimit -n 64; exec "$0" -e "$1"', process.execPath, program];
  const { stdout } = spawnSync('sh', words, { cwd: ROOT, encoding: 'utf8' });
  assert.match(stdout, /^process_start_time_seconds \d/m);
  const memory = process.platform === 'linux' ? /^NaN$/ : /^(?:NaN|\d+)$/;
  assert.match(/^process_resident_memory_bytes (.*)$/m.exec(stdout)?.[1] ?? '', memory);
});

test('shows by how much timers were late since the last collection', async (t) => {
  const { value } = await start(t);
  const lag = () => value('nodejs_eventloop_lag_p99_seconds') ?? NaN;
  assert.ok(lag() >= 0);
  // Node counts from its first timer.
  await setTimeout(100);
  const end = performance.now() + 400;
  while (performance.now() < end);
  await setTimeout(1);
  // On a busy machine, that timer comes before Node's own, which is due in the same turn.
  await setImmediate();
  const late = lag();
  assert.ok(late > 0.3 && late < 60, `${late} s`);
  // No timer has run since.
  assert.equal(lag(), 0);
});
