/* How long what an issuer says is kept (docs/introspection.md), and that each request decides anew on it. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { NOW } from '../../verify/token/issuer.ts';
import { ACTIVE, openStand, type Stand } from './fixture.ts';

/** How often the issuer was asked by the end. */
async function questionsAfter(stand: Stand, millis: number, token?: string): Promise<number> {
  stand.clock.advance(millis);
  await stand.verdict(token);
  return stand.asked.length;
}

const LONG = { ...ACTIVE, exp: NOW + 10_000 };

describe('what an issuer said of a token', () => {
  test('is kept from its first use, for ten seconds [§22]', async () => {
    const stand = await openStand({ say: () => LONG });
    assert.equal(await questionsAfter(stand, 0), 1);
    assert.equal(await questionsAfter(stand, 9_999), 1);
    assert.equal(await questionsAfter(stand, 1), 2);
    assert.deepEqual(stand.counts, [
      'introspection active idp',
      'token introspected',
      'token remembered',
      'introspection active idp',
      'token introspected',
    ]);
  });

  test('is said of this token alone, not of one that begins or ends like it [§22]', async () => {
    const known = 'a'.repeat(4_000);
    const stand = await openStand({ say: (token) => (token === known ? LONG : { active: false }) });
    assert.equal(await stand.verdict(known), 'accepted');
    const rest = known.slice(1);
    for (const other of [`${known}b`, `${rest}b`, `b${rest}`, `A${rest}`, rest]) {
      assert.equal(await stand.verdict(other), 'token-inactive');
    }
    assert.equal(await stand.verdict(known), 'accepted');
  });

  test('is kept as long as the options say [§22]', async () => {
    const stand = await openStand({ options: { cacheSeconds: 300 }, say: () => LONG });
    await stand.verdict();
    assert.equal(await questionsAfter(stand, 299_999), 1);
    assert.equal(await questionsAfter(stand, 1), 2);
  });

  test('is not kept at all with 0 seconds, whether it is active or not [§22]', async () => {
    const stand = await openStand({ options: { cacheSeconds: 0 } });
    await stand.verdict();
    assert.equal(await questionsAfter(stand, 0), 2);
    stand.say = () => ({ active: false });
    await stand.verdict();
    assert.equal(await questionsAfter(stand, 0), 4);
  });

  test('is kept until its expiry, and never beyond, however long the process has run [§22, RFC 7662 §4, J5]', async () => {
    const stand = await openStand({ say: () => ({ ...ACTIVE, exp: NOW + 3 }) });
    stand.clock.advance(1_000);
    await stand.verdict();
    assert.equal(await questionsAfter(stand, 1_999), 1);
    stand.say = () => ({ active: false });
    stand.clock.advance(1);
    assert.equal(await stand.verdict(), 'token-inactive');
  });

  test('counts from the introspection request, not from its response [§22]', async () => {
    const stand = await openStand({ say: () => LONG });
    stand.say = () => {
      stand.clock.advance(4_000);
      return LONG;
    };
    await stand.verdict();
    assert.equal(await questionsAfter(stand, 5_999), 1);
    assert.equal(await questionsAfter(stand, 1), 2);
  });

  test('is decided on anew: it expires by the wall clock, too [§22, J5]', async () => {
    const stand = await openStand();
    await stand.verdict();
    stand.clock.set((NOW + 60) * 1000);
    assert.equal(await stand.verdict(), 'expired');
    assert.equal(stand.asked.length, 1);
  });

  test('is decided on anew: a token becomes valid without another introspection request [§22, J5]', async () => {
    const stand = await openStand({ say: () => ({ ...ACTIVE, nbf: NOW + 2 }) });
    assert.equal(await stand.verdict(), 'not-yet-valid');
    stand.clock.advance(1_999);
    assert.equal(await stand.verdict(), 'not-yet-valid');
    stand.clock.advance(1);
    assert.equal(await stand.verdict(), 'accepted');
    assert.equal(stand.asked.length, 1);
  });

  for (const [what, said, reason] of [
    ['inactive', { active: false }, 'token-inactive'],
    ['refused by the checks', { ...ACTIVE, aud: 'other' }, 'audience-mismatch'],
  ] as const) {
    test(`is kept for ten seconds at most if the token is ${what} [§22]`, async () => {
      const stand = await openStand({ options: { cacheSeconds: 300 }, say: () => said });
      assert.equal(await stand.verdict(), reason);
      assert.equal(await questionsAfter(stand, 9_999), 1);
      assert.equal(await stand.verdict(), reason);
      assert.equal(await questionsAfter(stand, 1), 2);
    });

    test(`is kept no longer than for an active token if the token is ${what} [§22]`, async () => {
      const stand = await openStand({ options: { cacheSeconds: 4 }, say: () => said });
      await stand.verdict();
      assert.equal(await questionsAfter(stand, 3_999), 1);
      assert.equal(await questionsAfter(stand, 1), 2);
    });
  }

  test('is not replaced by a failure, which is never kept [§22, J5]', async () => {
    const stand = await openStand();
    await stand.verdict();
    stand.say = () => Promise.reject(new Error('down'));
    assert.equal(await stand.verdict(), 'accepted');
    stand.clock.advance(10_000);
    assert.equal(await stand.verdict(), 'introspection-unavailable');
    stand.say = () => ACTIVE;
    assert.equal(await stand.verdict(), 'accepted');
    assert.equal(stand.asked.length, 3);
  });

  test('is kept of as many active tokens as the token cache has entries, the oldest dropped [§22]', async () => {
    const stand = await openStand({ values: { tokenCacheEntries: 2 } });
    for (const token of ['a', 'b', 'c', 'c', 'b']) await stand.verdict(token);
    assert.deepEqual(stand.asked, ['a', 'b', 'c']);
    await stand.verdict('a');
    // The use of a kept answer makes it no younger.
    await stand.verdict('c');
    assert.deepEqual(stand.asked, ['a', 'b', 'c', 'a']);
    await stand.verdict('b');
    assert.equal(stand.asked.length, 5);
  });

  test('is kept of no active token without a token cache, but of inactive ones [§22]', async () => {
    const stand = await openStand({ values: { tokenCacheEntries: 0 } });
    await stand.verdict();
    assert.equal(await questionsAfter(stand, 0), 2);
    stand.say = () => ({ active: false });
    await stand.verdict('other');
    assert.equal(await questionsAfter(stand, 0, 'other'), 3);
  });

  test('is kept of 1,000 inactive tokens, the oldest dropped, and these drop no active one [§22]', async () => {
    const stand = await openStand({ values: { tokenCacheEntries: 2 } });
    await stand.verdict();
    stand.say = () => ({ active: false });
    for (let index = 0; index < 1_001; index += 1) await stand.verdict(`t${index}`);
    assert.equal(await questionsAfter(stand, 0), 1_002);
    assert.equal(await questionsAfter(stand, 0, 't1'), 1_002);
    assert.equal(await questionsAfter(stand, 0, 't1000'), 1_002);
    assert.equal(await questionsAfter(stand, 0, 't0'), 1_003);
  });

  test('costs at most 100 introspection requests a second for 1,000 tokens used in rotation [§22]', async () => {
    const stand = await openStand({ values: { tokenCacheEntries: 10_000 }, say: () => LONG });
    const SECONDS = 60;
    let worst = 0;
    let before = 0;
    for (let second = 1; second <= SECONDS; second += 1) {
      for (let turn = 0; turn < 500; turn += 1) {
        await stand.verdict(`t${(second * 500 + turn) % 1_000}`);
        stand.clock.advance(2);
      }
      if (second % 10 === 0) {
        worst = Math.max(worst, stand.asked.length - before);
        before = stand.asked.length;
      }
    }
    assert.ok(worst <= 1_000, `${worst} introspection requests in ten seconds`);
    assert.ok(stand.asked.length >= 5_000);
  });
});
