/* The service over HTTP while its provider fails and comes back. */
import assert from 'node:assert/strict';
import { createKeyFetcher } from './fetch-fixture.ts';
import { after, afterEach, before, test, type TestContext } from 'node:test';
import { REFUSALS } from '../../../src/verify/base/refusal.ts';
import type { FetchErrorReason } from '../../../src/verify/base/events.ts';
import type { Fault, ListenerFault, NamedFault } from '../../idp/faults.ts';
import { startProvider, type Provider } from '../../idp/provider.ts';
import type { IssuerValues } from '../../../src/verify/options.ts';
import type { Response } from '../../support/client.ts';
import { startService, type InProcess, type TestService } from '../../support/service.ts';
import { HOUR, MINUTE, SECOND } from './key-set-fixture.ts';

let provider: Provider;

before(async () => {
  provider = await startProvider();
});

after(() => provider.stop());

afterEach(async () => {
  await provider.fault('all', undefined);
  provider.publish(undefined);
  timeoutMillis = 5000;
});

/** The limit for a fetch; shorter while the provider hangs. */
let timeoutMillis = 5000;
/** A test that waits for a limit fails if the limit does not pass. */
const BOUNDED = { timeout: 60_000 };
const IN_2100 = 4_102_444_800;

const issue = () => provider.issue({ exp: IN_2100 });

/** A service whose fetches the provider counts from now on. */
async function start(context: TestContext, change: Partial<InProcess> = {}): Promise<TestService> {
  const fetchKeys = (issuer: IssuerValues) => createKeyFetcher(issuer, undefined, timeoutMillis)();
  const service = await startService({ provider, fetchKeys, ...change });
  context.after(() => service.stop());
  provider.resetCounts();
  return service;
}

const privately = (service: TestService, token = issue()) => service.ask('/api/private', { token });

const statusOf = async (service: TestService, path: string) => (await service.ask(path)).status;

/**
 * The next action. That is the retry: only the summary of refusals may wait besides, for a minute, when a
 * client of another test reached this port.
 */
const untilRetry = ({ clock }: TestService) => Math.min(...clock.pending);

/** Moves the clock to the next retry and waits for its fetch. */
async function retry(service: TestService): Promise<void> {
  service.clock.advance(untilRetry(service));
  await service.keys.refresh();
}

/** RFC 9110 §10.2.3. No challenge, since the token may be fine. */
function assertUnavailable(
  response: Response,
  message: string = REFUSALS.temporarily_unavailable['keys-unavailable'],
): void {
  const { status, body, headers, challenges } = response;
  assert.deepEqual([status, body, challenges], [503, { error: 'temporarily_unavailable', message }, []]);
  assert.match(headers['retry-after'] ?? '', /^([1-9]|[12]\d|30)$/);
}

test('serves only what needs no key until the first keys arrive, and recovers without a restart [F4]', async (context) => {
  await provider.fault('all', 'refuse');
  const service = await start(context);
  const token = issue();
  for (const path of ['/api/private', '/api/feed', '/api/messages']) {
    assertUnavailable(await service.ask(path, { token }));
  }
  const paths = ['/api/public', '/api/feed', '/healthz', '/readyz', '/api/private'];
  assert.deepEqual(
    await Promise.all(paths.map((path) => statusOf(service, path))),
    [200, 200, 200, 503, 401],
  );
  assertUnavailable(await service.ask('/readyz'));
  assert.equal(provider.counts.connections, 0, 'requests cause no fetch so soon');
  await provider.fault('all', undefined);
  await retry(service);
  assert.deepEqual(
    [(await privately(service, token)).status, await statusOf(service, '/readyz')],
    [200, 200],
  );
});

test('tells the time of the next attempt with Retry-After', async (context) => {
  await provider.fault('all', 'refuse');
  const service = await start(context);
  for (let failure = 0; failure < 2; failure += 1) await retry(service);
  const delay = untilRetry(service);
  assert.equal((await privately(service)).headers['retry-after'], String(Math.ceil(delay / SECOND)));
});

test('accepts a valid token once the provider is up, even if the next retry is far away [§7]', async (context) => {
  await provider.fault('all', 'refuse');
  const service = await start(context);
  for (let failure = 0; failure < 5; failure += 1) await retry(service);
  await provider.fault('all', undefined);
  // A millisecond more, since retries are due at fractions of one, and their sums are inexact.
  service.clock.advance(5 * SECOND + 1);
  const responses = await Promise.all(Array.from({ length: 20 }, () => privately(service)));
  assert.deepEqual(new Set(responses.map(({ status }) => status)), new Set([200]));
  assert.equal(provider.counts.keySet, 1);
});

/** The logged reason for each fault of the key set. */
const REASONS: Record<ListenerFault | Exclude<NamedFault, 'wrong-issuer'>, FetchErrorReason> = {
  refuse: 'connection-failed',
  'wrong-host-certificate': 'certificate-refused',
  'expired-certificate': 'certificate-refused',
  'hang-before-headers': 'timeout',
  'hang-after-headers': 'timeout',
  drip: 'timeout',
  reset: 'connection-failed',
  'switch-protocols': 'connection-failed',
  html: 'not-a-json-object',
  'truncated-json': 'not-a-json-object',
  'empty-object': 'not-a-key-set',
  'empty-keys': 'no-usable-key',
  'too-large': 'too-large',
  'many-keys': 'too-many-keys',
  gzip: 'not-a-json-object',
  'not-modified': 'status-refused',
};

const OUTAGES: [where: 'keySet' | 'discovery', fault: Fault, reason: FetchErrorReason][] = [
  ...Object.entries(REASONS).map(([fault, reason]): ['keySet', Fault, FetchErrorReason] => [
    'keySet',
    fault as NamedFault,
    reason,
  ]),
  ['keySet', { status: 500 }, 'status-refused'],
  ['keySet', { redirect: 'https://localhost/' }, 'status-refused'],
  ['discovery', 'wrong-issuer', 'issuer-mismatch'],
  ['discovery', { status: 503 }, 'status-refused'],
];

for (const [where, fault, reason] of OUTAGES) {
  const condition = `the fault of ${where} is ${JSON.stringify(fault)}`;
  test(
    `serves with the keys held for an hour, then answers 503, then recovers when ${condition} [F2]`,
    BOUNDED,
    async (context) => {
      const service = await start(context);
      const token = issue();
      const unknown = provider.issue({ exp: IN_2100 }, { kid: 'unknown' });
      await provider.fault(where, fault);
      if (reason === 'timeout') timeoutMillis = 100;
      service.clock.advance(10 * MINUTE);
      assert.equal((await privately(service, token)).status, 200);
      await service.keys.refresh();
      assertUnavailable(await privately(service, unknown));
      service.clock.advance(50 * MINUTE - 1);
      assert.deepEqual(
        [(await privately(service, token)).status, await statusOf(service, '/readyz')],
        [200, 200],
      );
      await service.keys.refresh();
      service.clock.advance(1);
      assertUnavailable(await privately(service, token));
      assertUnavailable(await service.ask('/api/feed', { token }));
      assertUnavailable(await service.ask('/readyz'));
      const failures = service.logs.filter(({ message }) => message === 'signing keys could not be fetched');
      assert.deepEqual(
        failures.map((line) => [line.level, line.reason]),
        [['warn', reason]],
      );
      await provider.fault(where, undefined);
      timeoutMillis = 5000;
      await retry(service);
      assert.deepEqual(
        [(await privately(service, token)).status, await statusOf(service, '/readyz')],
        [200, 200],
      );
    },
  );
}

test(
  'answers a request for an unknown key by the end of the running fetch, and begins no second one, when the provider hangs',
  BOUNDED,
  async (context) => {
    const service = await start(context);
    await provider.fault('keySet', 'hang-before-headers');
    // Long enough for discovery on a busy machine.
    timeoutMillis = 1_000;
    service.clock.advance(10 * MINUTE);
    assert.equal((await privately(service)).status, 200);
    assertUnavailable(await privately(service, provider.issue({ exp: IN_2100 }, { kid: 'unknown' })));
    assert.equal(provider.counts.discovery, 1);
  },
);

test('refreshes after 10 minutes when only /readyz is requested', async (context) => {
  const service = await start(context);
  for (const [millis, fetches] of [
    [10 * MINUTE - 1, 0],
    [1, 1],
  ] as const) {
    service.clock.advance(millis);
    assert.equal(await statusOf(service, '/readyz'), 200);
    if (fetches > 0) await service.keys.refresh();
    assert.equal(provider.counts.keySet, fetches);
  }
});

test('is not ready while shutting down, even with keys', async (context) => {
  const service = await start(context);
  service.beginStopping();
  assertUnavailable(await service.ask('/readyz'), REFUSALS.temporarily_unavailable['shutting-down']);
  assert.deepEqual([await statusOf(service, '/healthz'), (await privately(service)).status], [200, 200]);
});

test('fetches once when twenty requests arrive before the keys', async (context) => {
  const service = await start(context, { cold: true });
  const responses = await Promise.all(Array.from({ length: 20 }, () => privately(service)));
  assert.deepEqual(new Set(responses.map(({ status }) => status)), new Set([200]));
  assert.deepEqual([provider.counts.discovery, provider.counts.keySet], [1, 1]);
});

test('lets a request wait after an idle time, and answers it with the keys fetched then', async (context) => {
  const service = await start(context);
  service.clock.advance(3 * HOUR);
  assert.equal((await privately(service)).status, 200);
  assert.equal(provider.counts.keySet, 1);
});

test('uses the configured URL without discovery', async (context) => {
  const service = await start(context, {
    cold: true,
    environment: { IDP_JWKS_URI: `${provider.issuer}.well-known/jwks.json` },
  });
  assert.equal((await privately(service)).status, 200);
  assert.deepEqual([provider.counts.discovery, provider.counts.keySet], [0, 1]);
});

test('leaves no connection to the provider open', BOUNDED, async (context) => {
  const service = await start(context);
  await provider.fault('keySet', 'hang-before-headers');
  timeoutMillis = 100;
  await service.keys.refresh();
  while (provider.openSockets > 0) await new Promise(setImmediate);
  assert.equal((await privately(service)).status, 200);
});
