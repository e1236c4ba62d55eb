/* The token cache, which saves work and decides nothing; and the issuer whose keys the verifier asks for. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { JsonObject } from '../../../src/verify/base/encoding.ts';
import { FetchError } from '../../../src/verify/keys/jwks.ts';
import { KeySet } from '../../../src/verify/keys/key-set.ts';
import { Refused } from '../../../src/verify/base/refusal.ts';
import type { MaybePromise } from '../../../src/verify/base/clock.ts';
import { verifiedOf, type VerifiedToken } from '../../../src/verify/token/verify.ts';
import { atOnce, TestClock } from '../../support/clock.ts';
import { draft, FAULTS, seal, type Fault, type TokenReason } from './faults.ts';
import {
  CAPACITIES,
  CLAIMS,
  foreignKey,
  GOOD,
  ISSUER,
  issue,
  verdictOf,
  keySetOf,
  NOW,
  openVerifier,
  published,
  remember,
  signingKey,
  verifierOver,
  type TimedVerifier,
} from './issuer.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const at = NOW * 1000;
const tokens = ['a', 'b', 'c', 'd'].map((sub) => issue({ sub }));
const [a = '', b = '', c = ''] = tokens;

/** The cached tokens: those for which the verifier returns the same value as before. */
const same = (verify: TimedVerifier, token: string, before: MaybePromise<VerifiedToken>) =>
  verify(token, at) === before;

test('caches a token that is used again, for as long as it is used', async () => {
  const verify = await openVerifier(2);
  const once = verify(a, at);
  const first = verify(a, at);
  assert.notEqual(first, once);
  for (let use = 1; use <= 3; use += 1) assert.ok(same(verify, a, first));
});

test('caches nothing when its capacity is 0', async () => {
  const verify = await openVerifier(0);
  assert.ok(!same(verify, a, remember(verify, a, at)));
});

test('evicts the oldest token when the cache is full', async () => {
  const verify = await openVerifier(2);
  const first = remember(verify, a, at);
  const second = remember(verify, b, at);
  assert.ok(same(verify, a, first));
  const third = remember(verify, c, at);
  assert.ok(same(verify, b, second));
  assert.ok(same(verify, c, third));
  assert.ok(!same(verify, a, first));
});

test('keeps at least the latest tokens cached, up to half of its capacity', async () => {
  const verify = await openVerifier(2 * tokens.length);
  const before = tokens.map((token) => remember(verify, token, at));
  assert.ok(tokens.every((token, index) => same(verify, token, before[index]!)));
});

for (const cacheEntries of CAPACITIES) {
  test(`returns each token with its own claims, with a cache of ${cacheEntries} tokens`, async () => {
    const verify = await openVerifier(cacheEntries);
    for (let sight = 1; sight <= 2; sight += 1) {
      for (const sub of ['a', 'b', 'c', 'd']) {
        assert.deepEqual({ ...verifiedOf(atOnce(verify(issue({ sub }), at))).claims }, { ...CLAIMS, sub });
      }
    }
  });

  test(`refuses a token that differs from a cached one in a single part, with a cache of ${cacheEntries} tokens [D7]`, async () => {
    const verify = await openVerifier(cacheEntries);
    const one = a.split('.');
    const other = b.split('.');
    const mixed = [
      [one[0], one[1], other[2]],
      [one[0], other[1], one[2]],
      [one[0], one[1], ''],
    ].map((parts) => parts.join('.'));
    for (const token of mixed) {
      assert.equal(await verdictOf(verify, a), 'accepted');
      assert.equal(await verdictOf(verify, token), 'signature-mismatch');
    }
  });
}

test('caches no refused token', async () => {
  for (const [reason, { apply, sender }] of Object.entries<Fault>(FAULTS)) {
    if (sender !== undefined) continue;
    const whole = draft();
    apply(whole);
    // A valid token with these settings, to be cached.
    const good = draft();
    Object.assign(good.header, { typ: 'at+jwt' });
    Object.assign(good.claims, { client_id: 'c', jti: 'j', iat: NOW, scp: 'x' });
    const verify = await openVerifier(1, { rules: whole.rules });
    const before = remember(verify, seal(good), at);
    for (let sight = 1; sight <= 2; sight += 1) assert.equal(await verdictOf(verify, seal(whole)), reason);
    assert.ok(same(verify, seal(good), before), reason);
  }
});

test('refuses a cached token once it has expired, every time [RFC 7519 §4.1.4, D7]', async () => {
  const verify = await openVerifier(1);
  remember(verify, GOOD, at);
  for (let time = 1; time <= 3; time += 1) {
    assert.equal(await verdictOf(verify, GOOD, (NOW + 60) * 1000), 'expired');
  }
});

/** A verifier with a key set that can change and a provider that can fail. */
async function stand(cacheEntries: number) {
  const provider: { response: () => Promise<JsonObject>; fetches: number } = {
    response: async () => keySetOf() as never,
    fetches: 0,
  };
  const clock = new TestClock(at);
  const keys = new KeySet(
    'idp',
    () => {
      provider.fetches += 1;
      return provider.response();
    },
    { clock, log: () => {}, count: undefined },
  );
  await keys.refresh();
  const verify = verifierOver(keys, cacheEntries);

  const publish = (...jwks: unknown[]) => {
    provider.response = async () => keySetOf(jwks) as never;
    return keys.refresh();
  };

  return { provider, clock, keys, verify, publish };
}

const long = issue({ exp: NOW + 100_000 });
const longWithoutKid = issue({ exp: NOW + 100_000 }, { kid: undefined });

for (const cacheEntries of CAPACITIES) {
  test(`refuses a cached token once its key has left the set, with a cache of ${cacheEntries} tokens [docs/keys.md, D7]`, async () => {
    const { verify, publish } = await stand(cacheEntries);
    for (const token of [long, longWithoutKid]) {
      await publish(signingKey.publicJwk);
      assert.equal(await verdictOf(verify, token), 'accepted');
      await publish(foreignKey.publicJwk);
      assert.equal(await verdictOf(verify, token), token === long ? 'key-unknown' : 'signature-mismatch');
      await publish(signingKey.publicJwk);
      assert.equal(await verdictOf(verify, token), 'accepted', 'the key is back');
      await publish(published({ kid: signingKey.kid }, foreignKey.publicJwk));
      assert.equal(await verdictOf(verify, token), 'signature-mismatch', 'another key under the same name');
    }
  });

  test(`reports the missing key of a cached token before its expiry, with a cache of ${cacheEntries} tokens [docs/how-a-request-is-checked.md]`, async () => {
    const { verify, publish } = await stand(cacheEntries);
    assert.equal(await verdictOf(verify, GOOD), 'accepted');
    await publish(foreignKey.publicJwk);
    assert.equal(await verdictOf(verify, GOOD, at + 60_000), 'key-unknown');
  });

  test(`refuses a cached token without kid once there is a second key, with a cache of ${cacheEntries} tokens [docs/how-a-request-is-checked.md]`, async () => {
    const { verify, publish } = await stand(cacheEntries);
    assert.equal(await verdictOf(verify, longWithoutKid), 'accepted');
    await publish(signingKey.publicJwk, foreignKey.publicJwk);
    assert.equal(await verdictOf(verify, longWithoutKid), 'key-unknown');
    assert.equal(await verdictOf(verify, long), 'accepted');
  });

  test(`answers 503 to a cached token once its keys are too old, with a cache of ${cacheEntries} tokens [docs/keys.md]`, async () => {
    const { verify, clock, provider } = await stand(cacheEntries);
    assert.equal(await verdictOf(verify, long), 'accepted');
    provider.response = () => Promise.reject(new FetchError('timeout'));
    clock.advance(60 * 60_000);
    assert.equal(await verdictOf(verify, long, clock.now()), 'keys-unavailable');
  });

  test(`returns a promise when keys must be fetched first, with a cache of ${cacheEntries} tokens`, async () => {
    const { verify, clock, provider } = await stand(cacheEntries);
    remember(verify, long, at);
    provider.response = () => new Promise(() => {});
    clock.advance(60 * 60_000);
    assert.ok(verify(long, at) instanceof Promise);
  });
}

test('keeps a token cached when its key is fetched again', async () => {
  const { verify, keys } = await stand(1);
  const before = remember(verify, long, at);
  await keys.refresh();
  assert.ok(same(verify, long, before));
});

test('looks up no key for a token that is refused without one [docs/how-a-request-is-checked.md]', async () => {
  let fetches = 0;

  const never = () =>
    new Promise<JsonObject>(() => {
      fetches += 1;
    });

  const cold = verifierOver(
    new KeySet('idp', never, { clock: new TestClock(at), log: () => {}, count: undefined }),
    1,
  );
  const before: readonly TokenReason[] = [
    'token-malformed',
    'header-malformed',
    'payload-malformed',
    'algorithm-refused',
    'critical-header',
    'type-refused',
    'key-id-malformed',
  ];
  for (const reason of before) {
    const whole = draft();
    FAULTS[reason].apply(whole);
    assert.throws(
      () => cold(seal(whole), at),
      (thrown) => thrown instanceof Refused && thrown.refusal.reason === reason,
    );
  }
  assert.equal(fetches, 0);
  assert.ok(cold(GOOD, at) instanceof Promise);
  assert.equal(fetches, 1);
});

test('keeps two issuers with equal kids apart, cached and not, in both orders [D3]', async () => {
  const other = 'https://other.test/';
  const ours = await openVerifier(10);
  const theirs = await openVerifier(10, {
    rules: { issuer: other },
    jwks: [published({ kid: signingKey.kid }, foreignKey.publicJwk)],
  });
  const theirToken = issue({ iss: other }, {}, foreignKey.privateKey);
  for (let sight = 1; sight <= 2; sight += 1) {
    assert.equal(await verdictOf(ours, issue({ iss: other })), 'issuer-mismatch');
    assert.equal(await verdictOf(theirs, issue({ iss: other })), 'signature-mismatch');
    assert.equal(
      await verdictOf(theirs, issue({ iss: ISSUER }, {}, foreignKey.privateKey)),
      'issuer-mismatch',
    );
    assert.equal(
      await verdictOf(ours, issue({ iss: ISSUER }, {}, foreignKey.privateKey)),
      'signature-mismatch',
    );
    assert.equal(await verdictOf(ours, GOOD), 'accepted');
    assert.equal(await verdictOf(theirs, theirToken), 'accepted');
    assert.equal(await verdictOf(ours, theirToken), 'signature-mismatch');
  }
});

test('names the key that verified a token, even if the token is cached or names none', async () => {
  const verify = await openVerifier(10);
  for (const token of [issue(), issue(), issue({}, { kid: undefined })]) {
    assert.equal(verifiedOf(atOnce(verify(token))).found.kid, signingKey.kid);
  }
});

test('names in a refusal the key that was found, if any', async () => {
  const verify = await openVerifier(10);

  const refused = (token: string) => {
    try {
      return atOnce(verify(token));
    } catch (failure) {
      return failure instanceof Refused ? [failure.refusal.reason, failure.found.kid] : failure;
    }
  };

  assert.deepEqual(refused(issue({ exp: 1 })), ['expired', signingKey.kid]);
  assert.deepEqual(refused(issue({ exp: 1 }, { kid: undefined })), ['expired', signingKey.kid]);
  assert.deepEqual(refused(issue({}, {}, foreignKey.privateKey)), ['signature-mismatch', signingKey.kid]);
  assert.deepEqual(refused(issue({}, { alg: 'RS512' })), ['algorithm-refused', undefined]);
});

test('rethrows what is not a refusal: a bug stays a bug', async () => {
  const bug = new Error('a bug');
  const requiredClaims = new Proxy<string[]>([], {
    get: () => {
      throw bug;
    },
  });
  const verify = await openVerifier(10, { rules: { requiredClaims } });
  assert.throws(
    () => atOnce(verify(GOOD)),
    (thrown) => thrown === bug,
  );
});

test('keeps nothing of a header, however many different ones there are', async () => {
  const verify = await openVerifier(0);
  const textOf = (number: number) => String(number).padEnd(60_000, 'x');
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let number = 0; number < 100; number += 1) verify(issue({}, { more: textOf(number) }), at);
  collect();
  const kept = process.memoryUsage().heapUsed - before;
  assert.ok(kept < 1_500_000, `${kept} bytes`);
});
