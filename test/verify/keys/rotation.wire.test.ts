/* The service over HTTP while its provider rotates and withdraws keys, and during a flood of requests. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test, type TestContext } from 'node:test';
import { REFUSALS } from '../../../src/verify/base/refusal.ts';
import type { JsonObject } from '../../../src/verify/base/encoding.ts';
import { makeSigningKey } from '../../idp/keys.ts';
import { startProvider, type Provider } from '../../idp/provider.ts';
import { signJws } from '../../idp/tokens.ts';
import type { Response } from '../../support/client.ts';
import { startService, type InProcess, type TestService } from '../../support/service.ts';
import { integer, jwk } from './key-set-fixture.ts';

let provider: Provider;

before(async () => {
  provider = await startProvider();
});

after(() => provider.stop());
afterEach(() => provider.publish(undefined));

const IN_2100 = 4_102_444_800;

const issue = () => provider.issue({ exp: IN_2100 });

/** A service whose fetches the provider counts from now on. */
async function start(context: TestContext, change: Partial<InProcess> = {}): Promise<TestService> {
  const service = await startService({ provider, ...change });
  context.after(() => service.stop());
  provider.resetCounts();
  return service;
}

const privately = (service: TestService, token = issue()) => service.ask('/api/private', { token });

function assertUnknownKey({ status, challenges }: Response): void {
  const description = REFUSALS.invalid_token['key-unknown'];
  assert.deepEqual(
    [status, challenges],
    [401, [`Bearer realm="api", error="invalid_token", error_description="${description}"`]],
  );
}

test('accepts a token of a new key at first sight, and still one of the old key', async (context) => {
  const service = await start(context);
  const before = issue();
  provider.rotate();
  assert.deepEqual(
    [(await privately(service)).status, (await privately(service, before)).status],
    [200, 200],
  );
  assert.equal(provider.counts.keySet, 1);
});

test('refuses a cached token once its key has left the set [F3]', async (context) => {
  const service = await start(context);
  const token = issue();
  assert.equal((await privately(service, token)).status, 200);
  provider.rotate({ keepOld: false });
  assert.equal((await privately(service, token)).status, 200, 'known until the next refresh');
  await service.keys.refresh();
  assertUnknownKey(await privately(service, token));
});

test('refuses a cached token once its kid names another key', async (context) => {
  const service = await start(context);
  const token = issue();
  assert.equal((await privately(service, token)).status, 200);
  provider.publish({ keys: [jwk(provider.signingKey.kid)] });
  await service.keys.refresh();
  const { status, challenges } = await privately(service, token);
  assert.equal(status, 401);
  assert.match(challenges[0] ?? '', /"the token signature does not match"/);
});

test('fetches once in 5 seconds during a flood of unknown kids, refuses them all, and serves known ones', async (context) => {
  const service = await start(context);
  const flood = Array.from({ length: 60 }, (_, count) =>
    privately(service, provider.issue({}, { kid: `made-up-${count}` })),
  );
  assert.equal((await privately(service)).status, 200);
  for (const response of await Promise.all(flood)) assertUnknownKey(response);
  assert.equal(provider.counts.keySet, 1);
});

/** A fetch that the test answers. */
function heldFetch() {
  let resolve = (_: JsonObject): void => assert.fail('no fetch has begun');

  const fetchKeys = () =>
    new Promise<JsonObject>((done) => {
      resolve = done;
    });

  return { fetchKeys, response: () => resolve({ keys: [provider.signingKey.publicJwk] }) };
}

test(
  'lets 1,000 requests wait, refuses the next, and answers all that waited',
  { timeout: 60_000 },
  async (context) => {
    const { fetchKeys, response } = heldFetch();
    const service = await start(context, { cold: true, fetchKeys });
    const token = issue();
    let turnedAway: Response | undefined;
    const asked = Array.from({ length: 1001 }, () =>
      privately(service, token).then((got) => {
        if (got.status === 200) return got.status;
        turnedAway = got;
        response();
        return got.status;
      }),
    );
    const statuses = await Promise.all(asked);
    assert.deepEqual(
      [statuses.filter((status) => status === 200).length, turnedAway?.headers['retry-after']],
      [1000, '1'],
    );
    assert.deepEqual([turnedAway?.status, turnedAway?.body.error], [503, 'temporarily_unavailable']);
  },
);

test('verifies only with the usable key when the set is full of unusable ones [F9]', async (context) => {
  const key = makeSigningKey();
  const weak = [
    jwk('weak', { n: integer(1024) }),
    jwk('one', { e: 'AQ' }),
    jwk('huge', { n: integer(32768) }),
  ];
  const odd = [null, 1, [], {}, { kty: 'EC' }, { kty: 'oct', k: 'AA' }, ...weak];
  provider.publish({ keys: [...odd, { ...key.publicJwk, use: 'enc' }, provider.signingKey.publicJwk] });
  const service = await start(context);
  const claims = { iss: provider.issuer, aud: provider.audience, sub: 'a', exp: IN_2100 };
  assert.equal((await privately(service)).status, 200);
  assertUnknownKey(await privately(service, signJws({ alg: 'RS256', kid: key.kid }, claims, key.privateKey)));
  assert.equal(
    (await privately(service, provider.issue({}, { kid: undefined }))).status,
    200,
    'it is the only usable one',
  );
});
