/* The memory of verified tokens: it saves work and decides nothing. And whom the verifier asks for keys. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../src/base/encoding.ts';
import { FetchFailure, KeysPending, KeySet } from '../../src/keys/key-set.ts';
import { Refused, type TokenFlaw } from '../../src/base/refusal.ts';
import {
  claimsOf,
  createTokenVerifier,
  type TokenVerifier,
  type VerifiedToken,
} from '../../src/token/verify.ts';
import { TestClock } from '../support/clock.ts';
import { draft, FAULTS, seal, type Fault } from './faults.ts';
import {
  CAPACITIES,
  CLAIMS,
  foreignKey,
  GOOD,
  ISSUER,
  issue,
  judge,
  keySetOf,
  NOW,
  openVerifier,
  published,
  RULES,
  signingKey,
} from './issuer.ts';

const at = NOW * 1000;
const tokens = ['a', 'b', 'c', 'd'].map((sub) => issue({ sub }));
const [a = '', b = '', c = ''] = tokens;

/** Which of the tokens the verifier remembered: those for which it gives the value that it gave before. */
const same = (verify: TokenVerifier, token: string, before: VerifiedToken) => verify(token, at, 0) === before;

test('remembers a token for as long as it is used', async () => {
  const verify = await openVerifier(2);
  const first = verify(a, at, 0);
  for (let use = 1; use <= 3; use += 1) assert.ok(same(verify, a, first));
});

test('remembers nothing when it has room for nothing', async () => {
  const verify = await openVerifier(0);
  assert.ok(!same(verify, a, verify(a, at, 0)));
});

test('forgets the token used longest ago when its room is taken', async () => {
  const verify = await openVerifier(2);
  const [first, second] = [verify(a, at, 0), verify(b, at, 0)];
  assert.ok(same(verify, a, first));
  const third = verify(c, at, 0);
  assert.ok(same(verify, a, first));
  assert.ok(same(verify, c, third));
  assert.ok(!same(verify, b, second));
});

test('remembers each of as many tokens as there is room for', async () => {
  const verify = await openVerifier(tokens.length);
  const before = tokens.map((token) => verify(token, at, 0));
  assert.ok(tokens.every((token, index) => same(verify, token, before[index]!)));
});

for (const cacheEntries of CAPACITIES) {
  test(`gives each token its own claims with room for ${cacheEntries}`, async () => {
    const verify = await openVerifier(cacheEntries);
    for (let sight = 1; sight <= 2; sight += 1) {
      for (const sub of ['a', 'b', 'c', 'd'])
        assert.deepEqual({ ...claimsOf(verify(issue({ sub }), at, 0)) }, { ...CLAIMS, sub });
    }
  });

  test(`refuses a token that differs from a remembered one in one part only with room for ${cacheEntries}`, async () => {
    const verify = await openVerifier(cacheEntries);
    const [one, other] = [a.split('.'), b.split('.')];
    const mixed = [
      [one[0], one[1], other[2]],
      [one[0], other[1], one[2]],
      [one[0], one[1], ''],
    ].map((parts) => parts.join('.'));
    for (const token of mixed) {
      assert.equal(await judge(verify, a), 'accepted');
      assert.equal(await judge(verify, token), 'signature-mismatch');
    }
  });
}

test('makes no room for a token that is refused', async () => {
  for (const [flaw, { apply, sender }] of Object.entries<Fault>(FAULTS)) {
    if (sender !== undefined) continue;
    const whole = draft();
    apply(whole);
    // A good token for these very rules, to be remembered.
    const good = draft();
    Object.assign(good.header, { typ: 'at+jwt' });
    Object.assign(good.claims, { client_id: 'c', jti: 'j', iat: NOW, scp: 'x' });
    const verify = await openVerifier(1, { rules: whole.rules });
    const before = verify(seal(good), at, 0);
    for (let sight = 1; sight <= 2; sight += 1) assert.equal(await judge(verify, seal(whole)), flaw);
    assert.ok(same(verify, seal(good), before), flaw);
  }
});

test('forgets a token once it is no longer good', async () => {
  const verify = await openVerifier(1);
  const before = verify(GOOD, at, 0);
  assert.equal(await judge(verify, GOOD, (NOW + 60) * 1000), 'expired');
  assert.ok(!same(verify, GOOD, before));
});

/** A verifier in front of a key set that can be changed, and of a provider that can fail. */
async function stand(cacheEntries: number) {
  const provider: { answer: () => Promise<JsonObject>; fetches: number } = {
    answer: async () => keySetOf() as never,
    fetches: 0,
  };
  const clock = new TestClock(at);
  const keys = new KeySet(
    () => {
      provider.fetches += 1;
      return provider.answer();
    },
    clock,
    () => {},
  );
  await keys.refresh();
  const verify = createTokenVerifier(RULES, keys, cacheEntries);
  const publish = (...jwks: unknown[]) => {
    provider.answer = async () => keySetOf(jwks) as never;
    return keys.refresh();
  };
  return { provider, clock, keys, verify, publish };
}

const long = issue({ exp: NOW + 100_000 });
const longWithoutKid = issue({ exp: NOW + 100_000 }, { kid: undefined });

for (const cacheEntries of CAPACITIES) {
  test(`refuses a token accepted before once its key has left the set with room for ${cacheEntries} [contract §7]`, async () => {
    const { verify, publish } = await stand(cacheEntries);
    for (const token of [long, longWithoutKid]) {
      await publish(signingKey.publicJwk);
      assert.equal(await judge(verify, token), 'accepted');
      await publish(foreignKey.publicJwk);
      assert.equal(await judge(verify, token), token === long ? 'key-unknown' : 'signature-mismatch');
      await publish(signingKey.publicJwk);
      assert.equal(await judge(verify, token), 'accepted', 'the key is back');
      await publish(published({ kid: signingKey.kid }, foreignKey.publicJwk));
      assert.equal(await judge(verify, token), 'signature-mismatch', 'another key under the same name');
    }
  });

  test(`names the lost key before the end of a token accepted before with room for ${cacheEntries} [contract §5]`, async () => {
    const { verify, publish } = await stand(cacheEntries);
    assert.equal(await judge(verify, GOOD), 'accepted');
    await publish(foreignKey.publicJwk);
    assert.equal(await judge(verify, GOOD, at + 60_000), 'key-unknown');
  });

  test(`refuses a remembered token without kid once a second key is there with room for ${cacheEntries} [contract §5]`, async () => {
    const { verify, publish } = await stand(cacheEntries);
    assert.equal(await judge(verify, longWithoutKid), 'accepted');
    await publish(signingKey.publicJwk, foreignKey.publicJwk);
    assert.equal(await judge(verify, longWithoutKid), 'key-unknown');
    assert.equal(await judge(verify, long), 'accepted');
  });

  test(`cannot decide on a token accepted before once its keys are too old with room for ${cacheEntries} [contract §7]`, async () => {
    const { verify, clock, provider } = await stand(cacheEntries);
    assert.equal(await judge(verify, long), 'accepted');
    provider.answer = () => Promise.reject(new FetchFailure('timeout'));
    clock.advance(60 * 60_000);
    assert.equal(await judge(verify, long, clock.now()), 'keys-unavailable');
  });

  test(`asks to wait for keys only a request that has not waited in vain with room for ${cacheEntries}`, async () => {
    const { verify, clock, provider } = await stand(cacheEntries);
    verify(long, at, 0);
    provider.answer = () => new Promise(() => {});
    clock.advance(60 * 60_000);
    assert.throws(
      () => verify(long, at, 2),
      (thrown) => thrown instanceof Refused && thrown.refusal.reason === 'keys-unavailable',
    );
    assert.throws(() => verify(long, at, 0), KeysPending);
  });
}

test('goes on remembering a token when its key is fetched again', async () => {
  const { verify, keys } = await stand(1);
  const before = verify(long, at, 0);
  await keys.refresh();
  assert.ok(same(verify, long, before));
});

/** Whether the verifier, with room for two, still remembers `a` once the other token has been asked for in vain and `b` has come. */
async function makesRoom(
  { verify }: { verify: TokenVerifier },
  other: string,
  askInVain: () => Promise<void>,
): Promise<boolean> {
  const first = verify(a, at, 0);
  verify(other, at, 0);
  await askInVain();
  const third = verify(b, at, 0);
  return same(verify, a, first) && same(verify, b, third);
}

test('forgets a token that is asked for after its end', async () => {
  const { verify } = await stand(2);
  const ending = issue({ exp: NOW + 1 });
  assert.ok(
    await makesRoom({ verify }, ending, async () =>
      assert.equal(await judge(verify, ending, at + 2_000), 'expired'),
    ),
  );
});

test('forgets a token that is asked for after its key has left the set', async () => {
  const { verify, publish } = await stand(2);
  const ofOther = issue({}, { kid: 'other' }, foreignKey.privateKey);
  await publish(signingKey.publicJwk, published({ kid: 'other' }, foreignKey.publicJwk));
  assert.ok(
    await makesRoom({ verify }, ofOther, async () => {
      await publish(signingKey.publicJwk);
      assert.equal(await judge(verify, ofOther), 'key-unknown');
    }),
  );
});

test('asks for no key on behalf of a token that is refused without one [contract §5]', async () => {
  let fetches = 0;
  const never = () =>
    new Promise<JsonObject>(() => {
      fetches += 1;
    });
  const cold = createTokenVerifier(RULES, new KeySet(never, new TestClock(at), () => {}), 1);
  const before: readonly TokenFlaw[] = [
    'token-malformed',
    'header-malformed',
    'payload-malformed',
    'algorithm-refused',
    'critical-header',
    'type-refused',
    'key-id-malformed',
  ];
  for (const flaw of before) {
    const whole = draft();
    FAULTS[flaw].apply(whole);
    assert.throws(
      () => cold(seal(whole), at, 0),
      (thrown) => thrown instanceof Refused && thrown.refusal.reason === flaw,
    );
  }
  assert.equal(fetches, 0);
  assert.throws(() => cold(GOOD, at, 0), KeysPending);
});

test('keeps two issuers apart that name their keys alike, warm and cold, in both orders', async () => {
  const other = 'https://other.test/';
  const ours = await openVerifier(10);
  const theirs = await openVerifier(10, {
    rules: { issuer: other },
    jwks: [published({ kid: signingKey.kid }, foreignKey.publicJwk)],
  });
  const theirToken = issue({ iss: other }, {}, foreignKey.privateKey);
  for (let sight = 1; sight <= 2; sight += 1) {
    assert.equal(await judge(ours, issue({ iss: other })), 'issuer-mismatch');
    assert.equal(await judge(theirs, issue({ iss: other })), 'signature-mismatch');
    assert.equal(await judge(theirs, issue({ iss: ISSUER }, {}, foreignKey.privateKey)), 'issuer-mismatch');
    assert.equal(await judge(ours, issue({ iss: ISSUER }, {}, foreignKey.privateKey)), 'signature-mismatch');
    assert.equal(await judge(ours, GOOD), 'accepted');
    assert.equal(await judge(theirs, theirToken), 'accepted');
    assert.equal(await judge(ours, theirToken), 'signature-mismatch');
  }
});
