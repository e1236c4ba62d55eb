/* What is logged of refused and failed requests: lines at debug and error, and the summary at info. */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { createLog } from '../../src/options/log.ts';
import { describeBug, type Log, type LogLevel } from '../../src/verify/base/events.ts';
import { open } from '../../src/gate/rules/access.ts';
import { get } from '../../src/service/routes/route.ts';
import { Counting } from '../../src/options/metrics/metrics.ts';
import { createExpect, Observer } from '../../src/gate/observe.ts';
import { TestClock } from '../support/clock.ts';

const MINUTE = 60_000;

const NOTHING = { count: undefined, meter: undefined, expect: undefined };

const ARRIVED = { arrivedAtMillis: 0, request: { rawHeaders: [] } };

const routeAt = (pattern: string) => get(pattern, open, () => ({}));

const ORDERS = routeAt('/api/orders/{id}');

function observing(level: LogLevel = 'info', isAccessLogged = false) {
  const clock = new TestClock(0);
  const lines: Record<string, unknown>[] = [];
  const log = createLog(level, (line) => lines.push(JSON.parse(line)), clock.now);
  const expect = level === 'debug' ? () => ({}) : undefined;
  const observer = new Observer({ ...NOTHING, log, clock, isAccessLogged, expect });
  /** The lines logged since the last call, without time and level. */
  const logged = () => lines.splice(0).map(({ time, level: _, ...line }) => line);
  return {
    startTiming: () => observer.startTiming(),
    observe: observer.observe.bind(observer),
    summarize: () => observer.summarize(),
    clock,
    logged,
  };
}

const refuse = (observe: Observer['observe'], reason: 'expired' | 'scope-missing') =>
  observe(ARRIVED, { route: routeAt('/x'), reason }, 401);

test('logs a request whose body did not arrive in time as a refusal only, without method and route', () => {
  const lines: object[] = [];
  const clock = new TestClock();
  const metrics = new Counting();

  const log: Log = (message, { method, route, status, reason }) =>
    lines.push({ message, method, route, status, reason });

  const observer = new Observer({ ...NOTHING, clock, log, ...metrics, isAccessLogged: true });
  const request = { method: 'POST', url: '/orders', rawHeaders: [] };
  observer.observe({ arrivedAtMillis: 0, request }, { route: ORDERS, reason: 'request_timeout' }, 408);
  assert.deepEqual(lines[0], {
    message: 'request',
    method: null,
    route: null,
    status: 408,
    reason: 'request_timeout',
  });
  assert.doesNotMatch(metrics.text(), /POST/);
  observer.summarize();
});

test('logs how long a request took, in milliseconds to the microsecond', () => {
  const { observe, logged, clock, startTiming } = observing('info', true);
  clock.advance(5_000);
  const arrivedAtMillis = startTiming();
  clock.advance(1.23456);
  observe({ ...ARRIVED, arrivedAtMillis }, { route: ORDERS }, 200);
  assert.equal(logged()[0]?.durationMillis, 1.235);
});

test('measures how long a request took, in seconds, and reads no clock if the time is not needed', () => {
  const clock = new TestClock(0);
  const metrics = new Counting();
  const observer = new Observer({
    ...NOTHING,
    clock,
    log: () => {},
    ...metrics,
    isAccessLogged: false,
  });
  clock.advance(5_000);
  const arrivedAtMillis = observer.startTiming();
  clock.advance(2_000);
  observer.observe({ arrivedAtMillis, request: { method: 'GET', rawHeaders: [] } }, { route: ORDERS }, 200);
  assert.match(metrics.text(), /_seconds_sum\{.*"GET".*\} 2$/m);
  const idle = new Observer({ ...NOTHING, clock, log: () => {}, isAccessLogged: false });
  assert.equal(idle.startTiming(), 0);
});

test('logs a refusal at debug with the fields of the access log, including reason and kid', () => {
  const { observe, logged } = observing('debug');
  const kid = `key\n${'1'.repeat(100)}`;
  const request = { ...ARRIVED.request, method: 'GET' };
  observe({ ...ARRIVED, request }, { route: ORDERS, reason: 'expired', issuerName: 'idp', kid }, 401);
  observe({ ...ARRIVED, request }, { reason: 'not_found' }, 404);
  assert.deepEqual(logged(), [
    {
      message: 'request refused',
      method: 'GET',
      route: '/api/orders/{id}',
      status: 401,
      reason: 'expired',
      issuer: 'idp',
      kid: `key?${'1'.repeat(60)}`,
    },
    { message: 'request refused', method: 'GET', route: null, status: 404, reason: 'not_found' },
  ]);
});

test('logs a kid without characters, which a key may have [RFC 7517 §4.5]', () => {
  const { observe, logged } = observing('debug');
  observe(ARRIVED, { reason: 'expired', kid: '' }, 401);
  assert.equal(logged()[0]?.kid, '');
});

test('logs a bug with the method and pattern of the route, else the method of the request, the name of the error and its frames', () => {
  const { observe, logged, summarize } = observing('error');
  const failure = new TypeError('secret');
  const route = routeAt(`/${'long/'.repeat(20)}`);
  observe(ARRIVED, { route, reason: 'bug', bug: describeBug(failure) }, 500);
  const request = { ...ARRIVED.request, method: 'POST' };
  observe({ ...ARRIVED, request }, { reason: 'bug', bug: describeBug('secret') }, 500);
  const [{ frames, ...first } = {}, ...others] = logged();
  assert.deepEqual(first, {
    message: 'request failed',
    method: 'GET',
    route: `/${'long/'.repeat(20)}`,
    status: 500,
    reason: 'bug',
    error: 'TypeError',
  });
  assert.match(String(frames), /observe\.test\.[jt]s:\d+:\d+/);
  assert.deepEqual(others, [
    { message: 'request failed', method: 'POST', route: null, status: 500, reason: 'bug', error: 'string' },
  ]);
  summarize();
  assert.deepEqual(logged(), []);
});

test('reads no clock and no field for a refusal that the log does not take, but counts it', () => {
  const lines: unknown[] = [];
  const counted: string[] = [];
  let reads = 0;

  function monotonic() {
    reads += 1;
    return 0;
  }

  const observer = new Observer({
    ...NOTHING,
    log: (event) => lines.push(event),
    clock: { now: () => 0, monotonic, after: () => () => {} },
    count: (event, word) => counted.push(`${event} ${word}`),
    isAccessLogged: false,
  });
  const request = { rawHeaders: new Proxy([], { get: () => assert.fail('reads the fields') }) };

  const refused = () => observer.observe({ arrivedAtMillis: 0, request }, { reason: 'expired' }, 401);
  // The first one begins the period of the summary.
  refused();
  reads = 0;
  refused();
  observer.observe({ arrivedAtMillis: 0, request }, {}, 200);
  assert.deepEqual([lines, counted, reads], [[], ['refusal expired', 'refusal expired'], 0]);
});

test('does not count a bug or a failure of a handler as a refusal', () => {
  const { observe, logged, summarize } = observing();
  observe(ARRIVED, { route: ORDERS, reason: 'handler' }, 404);
  observe(ARRIVED, { route: ORDERS, reason: 'bug', bug: describeBug(new Error()) }, 500);
  assert.equal(logged().length, 1);
  summarize();
  assert.deepEqual(logged(), []);
});

test('logs nothing about a served request when the access log is off', () => {
  const { observe, logged, clock, summarize } = observing('debug');
  observe(ARRIVED, { route: ORDERS }, 200);
  assert.deepEqual(clock.pending, []);
  summarize();
  assert.deepEqual(logged(), []);
});

test('logs a served request in the access log only', () => {
  const { observe, logged, clock, summarize } = observing('debug', true);
  observe(ARRIVED, { route: ORDERS }, 200);
  assert.deepEqual(
    logged().map(({ message }) => message),
    ['request'],
  );
  assert.deepEqual(clock.pending, []);
  summarize();
  assert.deepEqual(logged(), []);
});

test('sums up refusals by reason a minute after the first', () => {
  const { observe, logged, clock } = observing();
  clock.advance(5_000);
  refuse(observe, 'expired');
  clock.advance(MINUTE - 1);
  refuse(observe, 'scope-missing');
  refuse(observe, 'expired');
  assert.deepEqual(logged(), []);
  clock.advance(1);
  assert.deepEqual(logged(), [
    { message: 'requests refused', seconds: 60, total: 3, expired: 2, 'scope-missing': 1 },
  ]);
});

test('starts each summary from zero, and writes none for a minute without refusals', () => {
  const { observe, logged, clock } = observing();
  refuse(observe, 'expired');
  clock.advance(MINUTE);
  logged();
  clock.advance(10 * MINUTE);
  assert.deepEqual([logged(), clock.pending], [[], []]);
  refuse(observe, 'scope-missing');
  clock.advance(MINUTE);
  assert.deepEqual(logged(), [{ message: 'requests refused', seconds: 60, total: 1, 'scope-missing': 1 }]);
});

test('writes the summary of the current minute once at the end', () => {
  const { observe, logged, clock, summarize } = observing();
  summarize();
  assert.deepEqual(logged(), []);
  refuse(observe, 'expired');
  clock.advance(59_500);
  summarize();
  assert.deepEqual(logged(), [{ message: 'requests refused', seconds: 60, total: 1, expired: 1 }]);
  summarize();
  assert.deepEqual([logged(), clock.pending], [[], []]);
});

test('does not count a probe that finds the service not ready as a refusal, but logs it at debug', () => {
  const { observe, logged, clock, summarize } = observing('debug');
  for (const url of ['/healthz', '/readyz?full']) {
    observe({ ...ARRIVED, request: { url, rawHeaders: [] } }, { reason: 'keys-unavailable' }, 503);
  }
  // Another spelling: the route decides.
  const spelled = { url: '/%72eadyz', rawHeaders: [] };
  observe({ ...ARRIVED, request: spelled }, { route: routeAt('/readyz'), reason: 'keys-unavailable' }, 503);
  assert.deepEqual(
    logged().map(({ message }) => message),
    ['request refused', 'request refused', 'request refused'],
  );
  assert.deepEqual(clock.pending, []);
  summarize();
  assert.deepEqual(logged(), []);
});

for (const reason of ['malformed-http', 'header_fields_too_large', 'request_timeout'] as const) {
  test(`counts ${reason} as a refusal even at the address of a probe`, () => {
    const { observe, logged, summarize } = observing();
    observe({ ...ARRIVED, request: { url: '/healthz', rawHeaders: [] } }, { reason }, 431);
    summarize();
    assert.equal(logged()[0]?.[reason], 1);
  });
}

for (const url of ['/api/readyz', '/readyz/x', '/healthzz', '/?/healthz', undefined]) {
  test(`does not treat ${url} as a probe`, () => {
    const { observe, logged, summarize } = observing('info', true);
    const request = { url, rawHeaders: [] };
    observe({ ...ARRIVED, request }, {}, 200);
    observe({ ...ARRIVED, request }, { reason: 'not_found' }, 404);
    summarize();
    assert.deepEqual(
      logged().map(({ message }) => message),
      ['request', 'request', 'requests refused'],
    );
  });
}

test('counts refusals for metrics where nothing is logged', () => {
  const counted: unknown[] = [];
  const clock = new TestClock(0);
  const count = (...one: readonly unknown[]) => void counted.push(one);
  const observer = new Observer({ ...NOTHING, clock, log: undefined, isAccessLogged: false, count });
  refuse(observer.observe.bind(observer), 'expired');
  assert.deepEqual([counted, clock.pending], [[['refusal', 'expired']], []]);
});

test('gives the log what was thrown, for one that tells messages', () => {
  const told: unknown[] = [];
  const log: Log = (event, _, error) => told.push([event, error]);
  const observer = new Observer({ ...NOTHING, clock: new TestClock(0), log, isAccessLogged: false });
  const error = new Error('secret');
  observer.observe(ARRIVED, { reason: 'bug', thrown: { error } }, 500);
  assert.deepEqual(told, [['request failed', error]]);
});

test('names a method that HTTP knows, and no other [RFC 9110 §9.1, RFC 5789]', () => {
  const { observe, logged } = observing('info', true);
  const known = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'];
  for (const method of [...known, 'trace', 'QUERY']) {
    observe({ ...ARRIVED, request: { method, rawHeaders: [] } }, {}, 405);
  }
  assert.deepEqual(
    logged().map(({ method }) => method),
    [...known, '_OTHER', '_OTHER'],
  );
});

test('of an expected URI, the log shows 64 characters of the host and of a path without a route, but all of the public URL', () => {
  const facts = { method: 'GET', host: 'h'.repeat(100), path: `/${'p'.repeat(100)}`, rawHeaders: [] };

  const expectedHtu = (publicUrl?: string) =>
    createExpect([], { publicUrl, trustProxy: false })({ reason: 'proof-htu', facts }).expectedHtu;

  assert.equal(expectedHtu(), `http://${'h'.repeat(57)}/${'p'.repeat(63)}`);
  const publicUrl = `https://${'u'.repeat(92)}`;
  assert.equal(expectedHtu(publicUrl), `${publicUrl}/${'p'.repeat(63)}`);
});
