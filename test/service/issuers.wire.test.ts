/* The service with several providers: the faults of one do not affect another, and when the service is ready
   (docs/several-issuers.md). */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { after, afterEach, before, test, type TestContext } from 'node:test';
import { authenticated, createService, get, type Route } from '../../src/gatehouse.ts';
import { createTestIssuer } from '../../src/testing.ts';
import { startProvider, type Provider } from '../idp/provider.ts';
import { startService, type InProcess, type TestService } from '../support/service.ts';
import { HOUR, MINUTE } from '../verify/keys/key-set-fixture.ts';

let staff: Provider;
let partner: Provider;

before(async () => {
  staff = await startProvider();
  partner = await startProvider({ host: '127.0.0.1', audience: 'orders-api' });
});

after(async () => {
  await staff.stop();
  await partner.stop();
});

afterEach(async () => {
  for (const provider of [staff, partner]) await provider.fault('all', undefined);
});

const IN_2100 = { exp: 4_102_444_800 };

/** A service with both, for one test. */
async function start(context: TestContext, change: Partial<InProcess> = {}): Promise<TestService> {
  const environment = {
    ISSUERS: 'partner',
    ISSUER_PARTNER_DOMAIN: partner.domain,
    ISSUER_PARTNER_AUDIENCE: partner.audience,
  };
  const service = await startService({ provider: staff, environment, ...change });
  context.after(() => service.stop());
  return service;
}

const statusOf = async (service: TestService, token: string) =>
  (await service.ask('/api/private', { token })).status;

const readiness = async (service: TestService) => (await service.ask('/readyz')).status;

test('accepts the tokens of both providers, each for its own audience', async (t) => {
  const service = await start(t);
  assert.equal(await statusOf(service, staff.issue()), 200);
  assert.equal(await statusOf(service, partner.issue()), 200);
  assert.equal(await statusOf(service, staff.issue({ aud: partner.audience })), 401);
  assert.equal(await statusOf(service, partner.issue({ aud: staff.audience })), 401);
  assert.equal(await statusOf(service, staff.issue({ iss: partner.issuer, aud: partner.audience })), 401);
});

test('answers 503 only to the tokens of a provider that is down', async (t) => {
  await partner.fault('all', 'refuse');
  const service = await start(t);
  const answer = await service.ask('/api/private', { token: partner.issue() });
  assert.deepEqual([answer.status, answer.body.error], [503, 'temporarily_unavailable']);
  assert.match(answer.headers['retry-after'] ?? '', /^([1-9]|[12]\d|30)$/);
  assert.equal(await statusOf(service, staff.issue()), 200);
});

test('lets requests wait for the keys of one issuer while the limit is reached for another [§7, §14]', async (t) => {
  const hanging = new EventEmitter();

  const fetchKeys = async (_: unknown, name: string) => {
    if (name === 'partner') await once(hanging, 'end');
    return { keys: [(name === 'partner' ? partner : staff).signingKey.publicJwk] };
  };

  // A slow machine needs longer for the requests than a fetch may take.
  t.mock.method(AbortSignal, 'timeout', () => new AbortController().signal);
  const service = await start(t, { fetchKeys, cold: true });
  const token = partner.issue();
  const statuses: number[] = [];
  const asked = Array.from({ length: 1_001 }, () =>
    statusOf(service, token).then((status) => statuses.push(status)),
  );
  await Promise.race(asked);
  assert.deepEqual(statuses, [503]);

  assert.equal(await statusOf(service, staff.issue()), 200);
  hanging.emit('end');
  await Promise.all(asked);
  assert.equal(statuses.filter((status) => status === 200).length, 1_000);
});

test('is ready once the first issuer has keys, even if another has never had any', async (t) => {
  await partner.fault('all', 'refuse');
  const service = await start(t);
  assert.equal(await readiness(service), 200);
});

test('is not ready until the first issuer has had keys, even if another has them', async (t) => {
  await staff.fault('all', 'refuse');
  const service = await start(t);
  assert.equal(await readiness(service), 503);
  assert.equal(await statusOf(service, partner.issue()), 200);
  await staff.fault('all', undefined);
  await service.keys.refresh();
  assert.equal(await readiness(service), 200);
});

test('stays ready while any issuer has keys, once the first has had some', async (t) => {
  const service = await start(t);
  await staff.fault('all', 'refuse');
  service.clock.advance(HOUR - MINUTE);
  for (const keys of service.keySets) await keys.refresh();
  service.clock.advance(MINUTE);
  assert.equal(await statusOf(service, staff.issue(IN_2100)), 503);
  assert.equal(await readiness(service), 200);

  await partner.fault('all', 'refuse');
  for (const keys of service.keySets) await keys.refresh();
  service.clock.advance(HOUR);
  assert.equal(await readiness(service), 503);
});

test('keeps the keys of every issuer fresh while /readyz is requested', async (t) => {
  const fetched: string[] = [];

  const fetchKeys = async (_: unknown, name: string) => {
    fetched.push(name);
    return { keys: [staff.signingKey.publicJwk] };
  };

  const service = await start(t, { fetchKeys });
  assert.deepEqual(fetched, ['idp', 'partner']);
  service.clock.advance(10 * MINUTE);
  assert.equal(await readiness(service), 200);
  assert.deepEqual(fetched, ['idp', 'partner', 'idp', 'partner']);
});

test('names the issuer in every log line about keys, but nothing that a token claims', async (t) => {
  const service = await start(t);
  await partner.fault('all', 'refuse');
  for (const keys of service.keySets) await keys.refresh();
  const stranger = 'https://stranger.example/';
  for (const iss of [stranger, `${partner.issuer}x`, 'partner']) {
    assert.equal(await statusOf(service, staff.issue({ iss })), 401);
  }

  const aboutKeys = service.logs.filter(({ message }) => /signing key/.test(message));
  assert.deepEqual(aboutKeys.map(({ message, issuer }) => [message, issuer]).sort(), [
    ['signing keys could not be fetched', 'partner'],
    ['signing keys loaded', 'idp'],
    ['signing keys loaded', 'partner'],
  ]);
  assert.ok(!JSON.stringify(service.logs).includes('stranger'));
});

test('fetches no keys for a token of an unknown issuer', async (t) => {
  const service = await start(t);
  for (const provider of [staff, partner]) provider.resetCounts();
  const token = staff.issue({ iss: 'https://stranger.example/' }, { kid: 'unknown' });
  assert.equal(await statusOf(service, token), 401);
  const { challenges } = await service.ask('/api/private', { token });
  assert.deepEqual(challenges, [
    'Bearer realm="api", error="invalid_token", error_description="the token has another issuer (iss)"',
  ]);
  assert.deepEqual(
    [staff.counts, partner.counts].map(({ keySet, discovery }) => keySet + discovery),
    [0, 0],
  );
});

const refusalsOf = ({ logs }: TestService) =>
  logs.filter(({ message }) => message === 'request refused').map(({ reason, issuer }) => [reason, issuer]);

test('logs the configured name of the issuer of a refused token', async (t) => {
  const service = await start(t);
  for (const token of [
    partner.issue({ exp: 1 }),
    staff.issue({ exp: 1 }),
    partner.issue({}, { kid: 'unknown' }),
    staff.issue({ iss: 'https://stranger.example/' }),
  ]) {
    assert.equal(await statusOf(service, token), 401);
  }
  assert.deepEqual(refusalsOf(service), [
    ['expired', 'partner'],
    ['expired', 'idp'],
    ['key-unknown', 'partner'],
    ['issuer-mismatch', undefined],
  ]);
});

test('logs the issuer of a request that is refused because keys are missing', async (t) => {
  await partner.fault('all', 'refuse');
  const service = await start(t);
  assert.equal(await statusOf(service, partner.issue()), 503);
  assert.deepEqual(refusalsOf(service), [['keys-unavailable', 'partner']]);
});

test('a handler sees the issuer of its caller, by iss and by name, and can tell equal subjects apart', async (t) => {
  const first = createTestIssuer({ domain: 'staff.test' });
  const second = createTestIssuer({ domain: 'partner.test', audience: 'orders-api' });
  const who: Route = get('/who', authenticated, ({ caller }) => ({
    issuer: caller.issuer,
    issuerName: caller.issuerName,
    subject: caller.subject,
  }));
  const { domain, audience } = second.options;
  const settings = { ...first.options, issuers: { partner: { domain, audience } } };
  const service = createService(
    { routes: [who] },
    {
      ...settings,
      host: '127.0.0.1',
      port: 0,
      fetchKeys: (_, name) => (name === 'idp' ? first : second).options.fetchKeys(),
    },
  );
  t.after(() => service.stop());
  const url = await service.listen();

  const ask = async (issuer: typeof first) => {
    const response = await fetch(`${url}/who`, { headers: issuer.bearer({ sub: 'ada' }) });
    return response.json();
  };

  assert.deepEqual(await ask(first), { issuer: 'https://staff.test/', issuerName: 'idp', subject: 'ada' });
  assert.deepEqual(await ask(second), {
    issuer: 'https://partner.test/',
    issuerName: 'partner',
    subject: 'ada',
  });
});
