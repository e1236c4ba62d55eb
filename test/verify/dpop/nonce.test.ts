import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Refused } from '../../../src/verify/base/refusal.ts';
import { checkNonce } from '../../../src/verify/dpop/proof.ts';
import { nonceAt } from '../../support/proof.ts';

const SECRET = 's'.repeat(32);
/** The beginning of a slot of 60 seconds. */
const SLOT = 1_800_000_000_000;
const good = nonceAt(SECRET, SLOT);

const check = (nonce: unknown, nowMillis: number) => checkNonce(SECRET, nonce, nowMillis);

/** The nonce that a refusal demands instead. */
function demanded(nonce: unknown, nowMillis: number, secret = SECRET): string {
  const refused = checkNonce(secret, nonce, nowMillis);
  assert.ok(refused instanceof Refused, 'the nonce is taken');
  assert.equal(refused.refusal.kind, 'use_dpop_nonce');
  return refused.found.freshNonce ?? '';
}

test('demands one nonce throughout a slot, and another in each slot [docs/dpop.md]', () => {
  assert.equal(demanded('', SLOT), demanded('', SLOT + 59_999));
  const offsets = [-60_000, -1, 0, 59_999, 60_000, 119_999, 120_000];
  assert.equal(new Set(offsets.map((offset) => demanded('', SLOT + offset))).size, 4);
});

test('demands nonces of unguessable length that need no escape [RFC 9449 §8.1]', () => {
  assert.match(demanded('', SLOT), /^[\w-]{43}$/);
});

for (const afterMillis of [0, 59_999]) {
  test(`accepts a nonce ${afterMillis} ms after its slot began, and offers no other nonce [RFC 9449 §9]`, () => {
    assert.equal(check(good, SLOT + afterMillis), undefined);
  });
}

for (const afterMillis of [60_000, 119_999]) {
  test(`accepts a nonce ${afterMillis} ms after its slot began, and offers the current nonce [RFC 9449 §9]`, () => {
    assert.equal(check(good, SLOT + afterMillis), nonceAt(SECRET, SLOT + 60_000));
  });
}

for (const afterMillis of [-60_000, -1, 120_000, 180_000]) {
  test(`refuses a nonce ${afterMillis} ms after its slot began, and demands the current nonce [RFC 9449 §4.3(10), §9]`, () => {
    assert.equal(demanded(good, SLOT + afterMillis), nonceAt(SECRET, SLOT + afterMillis));
  });
}

test('agrees with replicas that share the secret, and with no others [RFC 9449 §9]', () => {
  const fresh = nonceAt(SECRET, SLOT + 60_000);
  assert.equal(checkNonce(SECRET, good, SLOT + 60_000), fresh);
  for (const secret of ['t'.repeat(32), `${SECRET}s`, 'S'.repeat(32)]) {
    for (const afterMillis of [0, 60_000]) {
      assert.notEqual(demanded(good, SLOT + afterMillis, secret), nonceAt(SECRET, SLOT + afterMillis));
    }
  }
});

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
  test(`does not accept ${JSON.stringify(value)?.replaceAll(good, '<nonce>')} as a nonce [RFC 9449 §9]`, () => {
    assert.equal(demanded(value, SLOT), good);
    assert.equal(demanded(value, SLOT + 60_000), nonceAt(SECRET, SLOT + 60_000));
  });
}

test('demands the same nonce as a replica of any version, for this secret and time [RFC 9449 §9]', () => {
  assert.equal(demanded('', 1_800_000_000_000), 'dTAJ5snXWHvL9YnimlMMF815NMVpQFn8om8luQssmVo');
});
