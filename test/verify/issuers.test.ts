/* The issuers that tokens are trusted from: whose keys each has, and when tokens can be verified. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { readGateOptions } from '../../src/gate/options.ts';
import { Part } from '../../src/verify/base/option.ts';
import { Refused } from '../../src/verify/base/refusal.ts';
import { createIssuers, haveKeys } from '../../src/gate/checks.ts';
import { FetchError } from '../../src/verify/keys/jwks.ts';
import { MAX_AGE_MILLIS } from '../../src/verify/keys/key-set.ts';
import { makeSigningKey } from '../idp/keys.ts';
import { TestClock } from '../support/clock.ts';

const GIVEN = {
  domain: 'idp.test',
  audience: 'https://api.test',
  issuers: { partner: { domain: 'partner.test', audience: 'orders-api' } },
};

const { kid, publicJwk } = makeSigningKey();

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
  const clock = new TestClock();
  const issuers = createIssuers(values, {
    clock,
    log: (event) => logged.push(event),
    count: (...line) => counted.push(line),
  });
  for (const { keys } of issuers) await keys.refresh();
  return { issuers, clock, logged: logged!, counted: counted!, asked: asked! };
}

test('hands the one clock tolerance on to each issuer [RFC 7519 §4.1.4]', () => {
  const values = readGateOptions({
    ...GIVEN,
    clockToleranceSeconds: 7,
    fetchKeys: async () => ({ keys: [] }),
  });
  const around = { clock: new TestClock(), log: () => {}, count: undefined };
  const tolerances = createIssuers(values, around).map((issuer) => issuer.clockToleranceSeconds);
  assert.deepEqual(tolerances, [7, 7]);
});

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

test('fetches over the given connection, from the address of the issuer or else by discovery [OpenID Connect Discovery §4]', async () => {
  const asked: string[] = [];

  const connect = async ({ href }: URL) => {
    asked.push(href);
    throw new FetchError('proxy-failed');
  };

  const values = readGateOptions({
    ...GIVEN,
    jwksUri: 'https://keys.test/set',
    connect: Part.make('connect', connect),
  });
  const surroundings = { clock: new TestClock(), log: () => {}, count: undefined };
  for (const { keys } of createIssuers(values, surroundings)) await keys.refresh();
  assert.deepEqual(asked, ['https://keys.test/set', 'https://partner.test/.well-known/openid-configuration']);
});

test('trusts only keys with the algorithms of their issuer [RFC 8725 §3.1]', async () => {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const elliptic = { ...publicKey.export({ format: 'jwk' }), kid: 'elliptic' };
  const values = readGateOptions({
    ...GIVEN,
    issuers: { partner: { ...GIVEN.issuers.partner, algorithms: ['ES256'] } },
    fetchKeys: async () => ({ keys: [publicJwk, elliptic] }),
  });
  const surroundings = { clock: new TestClock(), log: () => {}, count: undefined };
  for (const { keys, name } of createIssuers(values, surroundings)) {
    await keys.refresh();
    const isTrusted = [
      !((await keys.find(kid, 'RS256')) instanceof Refused),
      !((await keys.find('elliptic', 'ES256')) instanceof Refused),
    ];
    assert.deepEqual(isTrusted, name === 'idp' ? [true, false] : [false, true], name);
  }
});

for (const [failing, isUsable] of [
  [[], true],
  [['partner'], true],
  [['idp'], false],
  [['idp', 'partner'], false],
] as const) {
  const who = failing.join(' and ') || 'none';

  test(`tokens ${isUsable ? 'can' : 'cannot'} be verified if the issuers without keys are: ${who}`, async () => {
    assert.equal(haveKeys((await openIssuers(...failing)).issuers), isUsable);
  });
}

test('tokens cannot be verified once the keys of every issuer are too old', async () => {
  const { issuers, clock } = await openIssuers();
  clock.advance(MAX_AGE_MILLIS - 1);
  assert.equal(haveKeys(issuers), true);
  clock.advance(1);
  assert.equal(haveKeys(issuers), false);
});

test('no token can be verified without an issuer', () => assert.equal(haveKeys([]), false));
