/* Key sets of tenants that have one each: who causes a fetch, how many run, and what readiness and metrics see. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { tenants } from '../../../src/tenants.ts';
import { Refused } from '../../../src/verify/base/refusal.ts';
import { FetchError } from '../../../src/verify/keys/jwks.ts';
import { foreignKey, signingKey } from '../../verify/token/issuer.ts';
import { HOUR, MINUTE, SECOND } from '../../verify/keys/key-set-fixture.ts';
import {
  entraKey,
  GOOD_KEYS,
  openTenants,
  OWN,
  TEMPLATE,
  tokenOf,
  type TenantPlan,
} from './tenants-fixture.ts';

const open = (plan: TenantPlan = {}) => openTenants({ jwksUri: OWN, ...plan });

const manyTenants = (count: number) => Array.from({ length: count }, (_, index) => `t${index}`);

const refuseConnection = async () => {
  throw new FetchError('connection-failed', 'ECONNREFUSED');
};

test("fetches a tenant's keys at its first token, and those of no other [§23]", async () => {
  const stand = open();
  assert.equal(await stand.verdict(tokenOf('b')), 'accepted');
  assert.equal(await stand.verdict(tokenOf('b')), 'accepted');
  assert.deepEqual(stand.fetches, ['idp b']);
});

test('fetches from an address that the list makes, and hands over the tenant [§23]', async () => {
  const asked: unknown[] = [];
  const stand = open({
    fetchKeys: async ({ issuer, jwksUri }, name, tenant) => {
      asked.push([issuer, jwksUri, name, tenant]);
      return GOOD_KEYS;
    },
  });
  await stand.verdict(tokenOf('a'));
  assert.deepEqual(asked, [[TEMPLATE, OWN, 'idp', 'a']]);
});

test('pools no keys: those of one tenant verify no token of another [§14, §23]', async () => {
  const fetchKeys = async (_: unknown, __: string, tenant = '') => ({
    keys: [(tenant === 'a' ? signingKey : foreignKey).publicJwk],
  });

  const stand = open({ fetchKeys });
  const foreign = { header: { kid: foreignKey.kid }, key: foreignKey.privateKey };
  assert.equal(await stand.verdict(tokenOf('a')), 'accepted');
  assert.equal(await stand.verdict(tokenOf('b', foreign)), 'accepted');
  assert.equal(await stand.verdict(tokenOf('b')), 'key-unknown');
  assert.equal(await stand.verdict(tokenOf('a', foreign)), 'key-unknown');
});

test('causes no fetch for a tenant that is not listed, however many are made up [§23, J6]', async () => {
  const stand = open();
  for (const tenant of manyTenants(500)) {
    assert.equal(await stand.verdict(tokenOf(tenant)), 'issuer-mismatch');
  }
  assert.deepEqual(stand.fetches, []);
});

test('does not fetch again by itself after an error, but for a token, five seconds later or more [§23]', async () => {
  const stand = open({ fetchKeys: refuseConnection });
  const token = tokenOf('a');
  assert.equal(await stand.verdict(token), 'keys-unavailable');
  assert.deepEqual(stand.clock.pending, []);
  stand.clock.advance(4_999);
  assert.equal(await stand.verdict(token), 'keys-unavailable');
  assert.equal(stand.fetches.length, 1);
  stand.clock.advance(1);
  assert.equal(await stand.verdict(token), 'keys-unavailable');
  assert.equal(stand.fetches.length, 2);
});

test('refreshes old keys for a token, also after an error, and lets none go on after an hour [§7, §23]', async () => {
  let isDown = false;
  const stand = open({ fetchKeys: () => (isDown ? refuseConnection() : Promise.resolve(GOOD_KEYS)) });
  const token = tokenOf('a');

  const verdict = async () => {
    const told = await stand.verdict(token);
    await turn();
    return [told, stand.fetches.length];
  };

  assert.deepEqual(await verdict(), ['accepted', 1]);
  stand.clock.advance(10 * MINUTE - 1);
  assert.deepEqual(await verdict(), ['accepted', 1]);
  isDown = true;
  stand.clock.advance(1);
  assert.deepEqual(await verdict(), ['accepted', 2]);
  stand.clock.advance(5 * SECOND - 1);
  assert.deepEqual(await verdict(), ['accepted', 2]);
  stand.clock.advance(1);
  assert.deepEqual(await verdict(), ['accepted', 3]);

  stand.clock.advance(HOUR);
  assert.deepEqual(await verdict(), ['keys-unavailable', 4]);
  isDown = false;
  stand.clock.advance(5 * SECOND);
  assert.deepEqual(await verdict(), ['accepted', 5]);
});

test('refreshes keys of ten minutes for a token, also if a fetch for an unknown key has failed before [§7, §23]', async () => {
  let isDown = false;
  const stand = open({ fetchKeys: () => (isDown ? refuseConnection() : Promise.resolve(GOOD_KEYS)) });
  assert.equal(await stand.verdict(tokenOf('a')), 'accepted');
  stand.clock.advance(MINUTE);
  isDown = true;
  assert.equal(await stand.verdict(tokenOf('a', { header: { kid: 'made up' } })), 'keys-unavailable');
  stand.clock.advance(9 * MINUTE - 1);
  assert.equal(await stand.verdict(tokenOf('a')), 'accepted');
  assert.equal(stand.fetches.length, 2);
  stand.clock.advance(1);
  assert.equal(await stand.verdict(tokenOf('a')), 'accepted');
  assert.equal(stand.fetches.length, 3);
});

test('runs 20 fetches at a time over all tenants, of two issuers too [§23]', async () => {
  const list = manyTenants(15);
  const second = { domain: 'x.test', audience: 'x', jwksUri: 'https://x.test/{tenant}' };
  const ends = new EventEmitter();
  ends.setMaxListeners(0);
  const stand = open({
    list,
    options: {
      issuers: { second: { ...second, tenants: tenants({ issuer: 'https://x.test/{tenant}', list }) } },
    },
    fetchKeys: async () => {
      await once(ends, 'end');
      return GOOD_KEYS;
    },
  });
  const asked = list.flatMap((tenant) => [
    stand.verdict(tokenOf(tenant)),
    stand.verdict(tokenOf(tenant, { claims: { iss: `https://x.test/${tenant}`, aud: 'x' } })),
  ]);
  await turn();
  assert.equal(stand.fetches.length, 20);
  ends.emit('end');
  await turn();
  ends.emit('end');
  const told = await Promise.all(asked);
  assert.equal(stand.fetches.length, 30);
  // Their keys name another issuer.
  assert.deepEqual([...new Set(told)], ['accepted', 'key-issuer-mismatch']);
});

test('lets the first tokens of others through while 30 dead tenants hang [§23, J17]', async () => {
  const dead = manyTenants(30);
  const ends = new EventEmitter();
  ends.setMaxListeners(0);
  let isHanging = false;
  const stand = open({
    list: [...dead, 'a', 'b'],
    fetchKeys: async (_, __, tenant = '') => {
      if (!dead.includes(tenant)) return GOOD_KEYS;
      if (isHanging) await once(ends, 'end');
      return refuseConnection();
    },
  });
  const tokens = dead.map((tenant) => tokenOf(tenant));
  for (const token of tokens) assert.equal(await stand.verdict(token), 'keys-unavailable');

  isHanging = true;
  stand.clock.advance(5 * SECOND);
  const asked = tokens.map((token) => stand.verdict(token));
  await turn();
  assert.equal(stand.fetches.length, 30 + 5);
  assert.equal(await stand.verdict(tokenOf('a')), 'accepted');
  assert.equal(await stand.verdict(tokenOf('b')), 'accepted');

  while (stand.fetches.length < 62) {
    ends.emit('end');
    await turn();
  }
  ends.emit('end');
  assert.deepEqual([...new Set(await Promise.all(asked))], ['keys-unavailable']);
});

test('holds a fetch that succeeds against no set: twenty are fetched again at a time [§23]', async () => {
  const list = manyTenants(21);
  const ends = new EventEmitter();
  ends.setMaxListeners(0);
  let isHanging = false;
  const stand = open({
    list,
    fetchKeys: async () => {
      if (isHanging) await once(ends, 'end');
      return GOOD_KEYS;
    },
  });
  const tokens = list.map((tenant) => tokenOf(tenant));
  for (const token of tokens) assert.equal(await stand.verdict(token), 'accepted');

  isHanging = true;
  stand.clock.advance(10 * MINUTE);
  for (const token of tokens) assert.equal(await stand.verdict(token), 'accepted');
  await turn();
  assert.equal(stand.fetches.length, 21 + 20);
  ends.emit('end');
  await turn();
  assert.equal(stand.fetches.length, 21 + 21);
  ends.emit('end');
});

test('takes a set whose turn never came for none that failed, so that it goes before those [§23, J17]', async (t) => {
  const deadlines: AbortController[] = [];
  t.mock.method(AbortSignal, 'timeout', () => {
    const deadline = new AbortController();
    deadlines.push(deadline);
    return deadline.signal;
  });
  const dead = manyTenants(20);
  const never = new Promise<never>(() => {});
  const stand = open({
    list: [...dead, 'a'],
    fetchKeys: async (_, __, tenant = '') => (dead.includes(tenant) ? never : GOOD_KEYS),
  });

  const askAll = (tenants: readonly string[]) => tenants.map((tenant) => stand.verdict(tokenOf(tenant)));

  const first = askAll([...dead, 'a']);
  await turn();
  assert.equal(stand.fetches.length, 20);
  // That of the last one first: its turn has not come.
  for (const deadline of deadlines.toReversed()) deadline.abort();
  assert.deepEqual([...new Set(await Promise.all(first))], ['keys-unavailable']);
  assert.equal(stand.fetches.length, 20);

  stand.clock.advance(5 * SECOND);
  const again = askAll(dead);
  await turn();
  assert.equal(stand.fetches.length, 25);
  assert.equal(await stand.verdict(tokenOf('a')), 'accepted');
  for (const deadline of deadlines) deadline.abort();
  await Promise.all(again);
});

test('fetches for unknown keys ten times a second over all tenants, and says 503 of those that it cannot know [§7, §23, J17]', async () => {
  const list = manyTenants(100);
  const stand = open({ list });
  for (const tenant of list) assert.equal(await stand.verdict(tokenOf(tenant)), 'accepted');
  assert.equal(stand.fetches.length, 100);

  /** The tenants whose set is known not to have the key. */
  const flood = async () => {
    const known: string[] = [];
    for (const tenant of list) {
      const verdict = await stand.verdict(tokenOf(tenant, { header: { kid: 'made up' } }));
      if (verdict === 'key-unknown') known.push(tenant);
      else assert.equal(verdict, 'keys-unavailable');
    }
    return known;
  };

  assert.deepEqual(await flood(), list.slice(0, 10));
  stand.clock.advance(999);
  assert.deepEqual(await flood(), list.slice(0, 10));
  stand.clock.advance(1);
  // Within five seconds, not twice for the same tenant.
  assert.deepEqual(await flood(), list.slice(0, 20));
  assert.deepEqual(
    stand.fetches.slice(100),
    list.slice(0, 20).map((tenant) => `idp ${tenant}`),
  );
  assert.equal(await stand.verdict(tokenOf('t99')), 'accepted');
});

test('finds a key that was rotated in, on first sight [§7, §23]', async () => {
  let key = signingKey;
  const stand = open({ fetchKeys: async () => ({ keys: [entraKey(key)] }) });
  assert.equal(await stand.verdict(tokenOf('a')), 'accepted');
  key = foreignKey;
  const rotated = tokenOf('a', { header: { kid: foreignKey.kid }, key: foreignKey.privateKey });
  assert.equal(await stand.verdict(rotated), 'accepted');
  assert.equal(await stand.verdict(tokenOf('a')), 'key-unknown');
});

test('at the start fetches the first tenant, and after a failure the next, until one is held [§23]', async () => {
  const stand = open({
    list: ['a', 'b', 'c'],
    fetchKeys: async (_, __, tenant) => (tenant === 'c' ? GOOD_KEYS : refuseConnection()),
  });
  const { keys } = stand.issuers[0]!;
  await keys.refresh();
  assert.deepEqual([stand.fetches, stand.isReady(), keys.ageMillis()], [['idp a'], false, Infinity]);

  const next = async () => {
    const [millis = 0] = stand.clock.pending;
    stand.clock.advance(millis);
    await turn();
    return millis;
  };

  const first = await next();
  assert.ok(first >= 800 && first <= 1_000);
  assert.deepEqual(stand.fetches, ['idp a', 'idp b']);
  const second = await next();
  assert.ok(second >= 1_600 && second <= 2_000);
  assert.deepEqual(stand.fetches, ['idp a', 'idp b', 'idp c']);
  assert.deepEqual([stand.clock.pending, stand.isReady()], [[], true]);
});

test('begins again with the first tenant when all have failed, at most 30 s apart [§23]', async () => {
  const stand = open({ fetchKeys: refuseConnection });
  await stand.issuers[0]?.keys.refresh();
  for (let count = 0; count < 9; count += 1) {
    const [millis = 0] = stand.clock.pending;
    assert.ok(millis <= 30_000);
    stand.clock.advance(millis);
    await turn();
  }
  assert.deepEqual(stand.fetches.slice(0, 4), ['idp a', 'idp b', 'idp a', 'idp b']);
  assert.equal(stand.fetches.length, 10);
  stand.issuers[0]?.keys.close();
  assert.deepEqual(stand.clock.pending, []);
});

test('waits a second again after the first failure since a set was held', async () => {
  let isDown = true;
  const stand = open({ fetchKeys: () => (isDown ? refuseConnection() : Promise.resolve(GOOD_KEYS)) });
  const { keys } = stand.issuers[0]!;
  await keys.refresh();
  for (let count = 0; count < 3; count += 1) {
    isDown = count < 2;
    stand.clock.advance(stand.clock.pending[0] ?? 0);
    await turn();
  }
  assert.deepEqual([stand.isReady(), stand.clock.pending], [true, []]);

  stand.clock.advance(10 * MINUTE);
  assert.equal(stand.isReady(), true);
  await turn();
  // Readiness keeps it fresh again after those pauses.
  assert.equal(stand.fetches.length, 5);

  isDown = true;
  stand.clock.advance(10 * MINUTE);
  await keys.refresh();
  assert.ok(stand.clock.pending[0]! <= SECOND, String(stand.clock.pending));
});

test('stops looking for a set to hold when a token has brought one', async () => {
  const stand = open({
    fetchKeys: async (_, __, tenant) => (tenant === 'b' ? GOOD_KEYS : refuseConnection()),
  });
  await stand.issuers[0]?.keys.refresh();
  assert.equal(await stand.verdict(tokenOf('b')), 'accepted');
  stand.clock.advance(SECOND);
  await turn();
  assert.deepEqual([stand.fetches, stand.clock.pending], [['idp a', 'idp b'], []]);
});

test('looks for one at a time, whoever asks meanwhile', async () => {
  const stand = open({ fetchKeys: refuseConnection });
  const { keys } = stand.issuers[0]!;
  await Promise.all([keys.refresh(), keys.refresh()]);
  assert.deepEqual([stand.fetches, stand.clock.pending.length], [['idp a'], 1]);
  stand.clock.advance(SECOND);
  await turn();
  assert.deepEqual(stand.fetches, ['idp a', 'idp b']);
});

test('finds no key itself, but for its tenants [§23]', async () => {
  const stand = open();
  const { keys } = stand.issuers[0]!;
  await keys.refresh();
  const found = await keys.find(signingKey.kid, 'RS256');
  assert.ok(found instanceof Refused);
  assert.equal(found.refusal.reason, 'issuer-mismatch');
});

test('does not look for one after it was closed', async () => {
  const stand = open({ fetchKeys: refuseConnection });
  const fetched = stand.issuers[0]?.keys.refresh();
  stand.issuers[0]?.keys.close();
  await fetched;
  assert.deepEqual(stand.clock.pending, []);
});

test('keeps one set fresh while readiness is asked for, and fetches no idle tenant for it [§23]', async () => {
  const stand = open({ list: manyTenants(10) });
  for (const tenant of manyTenants(10)) await stand.verdict(tokenOf(tenant));
  for (let minute = 1; minute <= 180; minute += 1) {
    stand.clock.advance(MINUTE);
    assert.equal(stand.isReady(), true);
    await turn();
  }
  const later = stand.fetches.slice(10);
  assert.deepEqual([...new Set(later)], ['idp t0']);
  assert.equal(later.length, 18);
});

test('is not ready while no set is usable, and again once one is fetched [§14, §23]', async () => {
  let isDown = false;
  const stand = open({ fetchKeys: () => (isDown ? refuseConnection() : Promise.resolve(GOOD_KEYS)) });
  await stand.issuers[0]?.keys.refresh();
  isDown = true;
  stand.clock.advance(HOUR);
  assert.equal(stand.isReady(), false);
  await turn();
  isDown = false;
  stand.clock.advance(SECOND);
  await turn();
  assert.equal(stand.isReady(), true);
});

test('does not ask again for readiness before the pause after a failure is over', async () => {
  const stand = open({ fetchKeys: refuseConnection });
  for (let count = 0; count < 50; count += 1) {
    assert.equal(stand.isReady(), false);
    await turn();
  }
  assert.equal(stand.fetches.length, 1);
});

test('tells the age of the oldest set in use, and the sum of the usable keys [§23]', async () => {
  const keysOf: Readonly<Record<string, readonly object[]>> = {
    a: [signingKey.publicJwk, foreignKey.publicJwk],
    b: [foreignKey.publicJwk],
  };
  const fetchKeys = async (_: unknown, __: string, tenant = '') => ({ keys: keysOf[tenant] ?? [] });
  const stand = open({ list: ['a', 'b', 'c'], fetchKeys });
  const { keys } = stand.issuers[0]!;
  const ofB = { header: { kid: foreignKey.kid }, key: foreignKey.privateKey };
  stand.clock.advance(HOUR);
  assert.equal(keys.ageMillis(), Infinity);

  assert.equal(await stand.verdict(tokenOf('c')), 'keys-unavailable');
  assert.equal(keys.ageMillis(), Infinity);
  assert.equal(await stand.verdict(tokenOf('a')), 'accepted');
  stand.clock.advance(MINUTE);
  assert.equal(await stand.verdict(tokenOf('b', ofB)), 'accepted');
  // The set that was never held does not count beside those.
  assert.deepEqual([keys.ageMillis(), keys.usable()], [MINUTE, 3]);

  stand.clock.advance(9 * MINUTE);
  // Nobody has asked for the first one for ten minutes.
  assert.deepEqual([keys.ageMillis(), keys.usable()], [9 * MINUTE, 3]);
  stand.clock.advance(MINUTE);
  assert.equal(keys.ageMillis(), 10 * MINUTE);

  // The one that is kept fresh does not count either while another one is in use.
  assert.equal(await stand.verdict(tokenOf('b', ofB)), 'accepted');
  stand.clock.advance(MINUTE);
  await keys.refresh();
  assert.equal(keys.ageMillis(), MINUTE);
});

test('counts fetches by the issuer alone, and names no tenant in the log above debug [§23]', async () => {
  const plan = { list: ['secret-tenant'], fetchKeys: refuseConnection };
  const stand = open(plan);
  await stand.verdict(tokenOf('secret-tenant'));
  await stand.verdict(tokenOf('other-tenant'));
  assert.deepEqual(stand.counts, ['key fetch connection-failed idp']);
  assert.equal(stand.logs.at(-1)?.message, 'signing keys could not be fetched');
  assert.doesNotMatch(JSON.stringify(stand.logs), /-tenant/);
});

test('names the tenant in lines about keys at debug [§23]', async () => {
  const stand = open({ level: 'debug', list: ['secret-tenant'] });
  await stand.verdict(tokenOf('secret-tenant'));
  const [line] = stand.logs.filter(({ message }) => message === 'signing keys loaded');
  assert.deepEqual([line?.issuer, line?.tenant], ['idp', 'secret-tenant']);
});

test('fetches every set, ten at a time, for --check [§23]', async () => {
  let running = 0;
  let most = 0;
  const list = manyTenants(35);
  const stand = open({
    list,
    fetchKeys: async () => {
      running += 1;
      most = Math.max(most, running);
      await turn();
      running -= 1;
      return GOOD_KEYS;
    },
  });
  await stand.issuers[0]?.refreshTenants?.();
  assert.deepEqual(stand.fetches.toSorted(), list.map((tenant) => `idp ${tenant}`).toSorted());
  assert.equal(most, 10);
});

test('has one set for all tenants where its address has no place for one [§23]', async () => {
  const stand = openTenants({ list: ['*'] });
  for (const tenant of manyTenants(50)) assert.equal(await stand.verdict(tokenOf(tenant)), 'accepted');
  for (const tenant of manyTenants(50)) {
    assert.equal(await stand.verdict(tokenOf(tenant, { header: { kid: 'made up' } })), 'key-unknown');
  }
  assert.deepEqual(stand.fetches, ['idp', 'idp']);
  assert.equal(stand.issuers[0]?.refreshTenants, undefined);
});
