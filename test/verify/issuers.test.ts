/* The issuers that tokens are trusted from: whose keys each has, and when tokens can be verified. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readGateOptions } from '../../src/gate/options.ts';
import { createIssuers, haveKeys } from '../../src/verify/issuers.ts';
import { makeSigningKey } from '../idp/keys.ts';
import { TestClock } from '../support/clock.ts';

const GIVEN = {
  domain: 'idp.test',
  audience: 'https://api.test',
  issuers: { partner: { domain: 'partner.test', audience: 'orders-api' } },
};

const { publicJwk } = makeSigningKey();

/** Two issuers, and what was logged, counted and asked for. Those that are named have no keys. */
async function openIssuers(...failing: string[]) {
  const logged: unknown[] = [];
  const counted: unknown[] = [];
  const asked: unknown[] = [];
  const values = readGateOptions({
    ...GIVEN,
    fetchKeys: async (issuer, name, tenant) => {
      asked.push([issuer.domain, name, tenant]);
      return failing.includes(name) ? assert.fail('no keys') : { keys: [publicJwk] };
    },
  });
  const issuers = createIssuers(values, {
    clock: new TestClock(),
    log: (event) => logged.push(event),
    count: (...line) => counted.push(line),
  });
  for (const { keys } of issuers) await keys.refresh();
  return { issuers, logged: logged!, counted: counted!, asked: asked! };
}

test('asks for the keys of each issuer alone, and counts its answers by its name [RFC 8725 §3.8]', async () => {
  const { issuers, asked, counted } = await openIssuers();
  assert.deepEqual(
    issuers.map(({ name, issuer, clockToleranceSeconds }) => [name, issuer, clockToleranceSeconds]),
    [
      ['idp', 'https://idp.test/', 0],
      ['partner', 'https://partner.test/', 0],
    ],
  );
  assert.deepEqual(asked, [
    ['idp.test', 'idp', undefined],
    ['partner.test', 'partner', undefined],
  ]);
  assert.deepEqual(counted, [
    ['key fetch', 'ok', 'idp'],
    ['key fetch', 'ok', 'partner'],
  ]);
});

test('says in the log once that keys are not from the provider', async () => {
  const isSaid = (event: unknown) => event === 'signing keys not from the provider';
  assert.equal((await openIssuers()).logged.filter(isSaid).length, 1);
  const logged: unknown[] = [];
  const surroundings = {
    clock: new TestClock(),
    log: (event: unknown) => logged.push(event),
    count: undefined,
  };
  createIssuers(readGateOptions(GIVEN), surroundings);
  assert.deepEqual(logged, []);
});

for (const [failing, isUsable] of [
  [[], true],
  [['partner'], true],
  [['idp'], false],
  [['idp', 'partner'], false],
] as const) {
  const who = failing.join(' and ') || 'nobody';

  test(`tokens ${isUsable ? 'can' : 'cannot'} be verified if ${who} lacks keys`, async () => {
    assert.equal(haveKeys((await openIssuers(...failing)).issuers), isUsable);
  });
}

test('no token can be verified without an issuer', () => assert.equal(haveKeys([]), false));
