import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createNonces } from '../../src/sender/dpop-nonce.ts';

const SECRET = 's'.repeat(32);
const nonces = createNonces(SECRET);
/** The beginning of a slot of 60 seconds. */
const SLOT = 1_800_000_000_000;

test('gives one nonce for the whole of a slot, and another for each slot [docs/dpop.md]', () => {
  assert.equal(nonces.current(SLOT), nonces.current(SLOT + 59_999));
  assert.equal(
    new Set([-60_000, -1, 0, 59_999, 60_000, 119_999, 120_000].map((offset) => nonces.current(SLOT + offset)))
      .size,
    4,
  );
});

test('gives nonces of unguessable length that need no escape [RFC 9449 §8.1]', () => {
  assert.match(nonces.current(SLOT), /^[\w-]{43}$/);
});

for (const [afterMillis, age] of [
  [-1, undefined],
  [-60_000, undefined],
  [0, 'current'],
  [59_999, 'current'],
  [60_000, 'previous'],
  [119_999, 'previous'],
  [120_000, undefined],
  [180_000, undefined],
] as const) {
  test(`says ${age} of a nonce ${afterMillis} ms after its slot began [RFC 9449 §9]`, () => {
    const given = [nonces.current(SLOT), nonces.current(SLOT + 59_999)];
    for (const nonce of given) assert.equal(nonces.slotOf(nonce, SLOT + afterMillis), age);
  });
}

test('agrees with replicas that share the secret, and with no others [RFC 9449 §9]', () => {
  const replica = createNonces(SECRET);
  assert.equal(replica.current(SLOT), nonces.current(SLOT));
  assert.equal(replica.slotOf(nonces.current(SLOT), SLOT + 60_000), 'previous');
  for (const secret of ['t'.repeat(32), `${SECRET}s`, 'S'.repeat(32)]) {
    const stranger = createNonces(secret);
    for (const afterMillis of [0, 60_000]) {
      assert.equal(stranger.slotOf(nonces.current(SLOT), SLOT + afterMillis), undefined);
    }
  }
});

const good = nonces.current(SLOT);

for (const value of [
  undefined,
  null,
  7,
  true,
  [good],
  { nonce: good },
  '',
  good.slice(0, -1),
  `${good}A`,
  `${good}=`,
  ` ${good}`,
  good.toLowerCase(),
  good.toUpperCase(),
  `${good.slice(0, -1)}\u0141`,
  good.replace(/^./, 'é'),
  `${good.startsWith('A') ? 'B' : 'A'}${good.slice(1)}`,
  '字'.repeat(43),
  'é'.repeat(43),
]) {
  test(`takes ${JSON.stringify(value)?.replaceAll(good, '<nonce>')} for no nonce [RFC 9449 §9]`, () => {
    assert.equal(nonces.slotOf(good, SLOT), 'current');
    assert.equal(nonces.slotOf(value, SLOT), undefined);
  });
}

test('gives the nonce that every replica gives, of whatever version, for this secret and time [RFC 9449 §9]', () => {
  assert.equal(
    createNonces('s'.repeat(32)).current(1_800_000_000_000),
    'dTAJ5snXWHvL9YnimlMMF815NMVpQFn8om8luQssmVo',
  );
});
