import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Refused } from '../../../src/verify/base/refusal.ts';
import { LocalReplayStore, type ReplayVerdict } from '../../../src/verify/dpop/replay.ts';
import { atOnce } from '../../support/clock.ts';
import { makeProofKey, sealProof } from '../../support/proof.ts';
import { NOW, openVerifier } from '../token/issuer.ts';
import {
  boundTo,
  draft,
  verdictOf,
  key,
  openSender,
  PATH,
  TOKEN,
  type Recorder,
  type Verdict,
} from '../sender-fixture.ts';

/** Thumbprints have a fixed length. */
const ONE = '1'.repeat(43);
const OTHER = '2'.repeat(43);

test('accepts a proof once [RFC 9449 §11.1]', () => {
  const store = new LocalReplayStore(330);
  assert.equal(store.record(ONE, 'jti', NOW + 300, NOW), 'new');
  for (let use = 2; use <= 4; use += 1) assert.equal(store.record(ONE, 'jti', NOW + 300, NOW), 'seen');
  assert.equal(store.record(ONE, 'another', NOW + 300, NOW), 'new');
});

test('recognises a used proof whatever its expiry', () => {
  const store = new LocalReplayStore(330);
  assert.equal(store.record(ONE, 'jti', NOW + 330, NOW), 'new');
  for (const expiresAtSeconds of [NOW, NOW + 1, NOW + 150, NOW + 330]) {
    assert.equal(store.record(ONE, 'jti', expiresAtSeconds, NOW), 'seen');
  }
});

test('distinguishes the same jti of two keys [RFC 9449 §11.1]', () => {
  const store = new LocalReplayStore(330);
  assert.equal(store.record(ONE, 'jti', NOW + 300, NOW), 'new');
  assert.equal(store.record(OTHER, 'jti', NOW + 300, NOW), 'new');
  assert.equal(store.record(OTHER, 'jti', NOW + 300, NOW), 'seen');
});

test('distinguishes similar pairs of key and jti', () => {
  const store = new LocalReplayStore(330);
  const pairs = [
    [ONE, 'a'],
    [ONE, 'A'],
    [ONE, 'a '],
    [ONE, 'a\u0000'],
    [ONE, ONE],
    [ONE, OTHER],
    [OTHER, ONE],
    [OTHER, 'a'],
    [ONE, `${'x'.repeat(255)}a`],
    [ONE, `${'x'.repeat(255)}b`],
    [ONE, `${ONE}a`],
    [ONE, `${OTHER}a`],
    [OTHER, `${ONE}a`],
    [`2${ONE.slice(1)}`, 'a'],
    [`${ONE.slice(1)}2`, 'a'],
  ] as const;

  for (const [thumbprint, jti] of pairs) {
    assert.equal(store.record(thumbprint, jti, NOW + 300, NOW), 'new', `${thumbprint} ${jti}`);
  }
});

for (const [offset, leeway] of [
  [300, 30],
  [0, 0],
  [1, 0],
  [0, 1],
  [7, 3],
  [9, 60],
  [0, 86_400],
] as const) {
  test(`refuses a used proof in every second of its window when the offset is ${offset} and the leeway ${leeway} [RFC 9449 §11.1, E2]`, async () => {
    const rules = { dpopIatOffsetSeconds: offset, dpopIatLeewaySeconds: leeway };
    // From the first second in which it can be accepted, whatever the bucket.
    for (let shift = 0; shift < 50; shift += 1) {
      const iat = NOW + shift;
      const first = iat - leeway;
      const last = iat + offset;
      const store = new LocalReplayStore(offset + leeway);
      assert.equal(store.record(ONE, 'jti', last, first), 'new');
      const seconds =
        last - first < 1000
          ? Array.from({ length: last - first + 1 }, (_, index) => first + index)
          : [first, first + 1, last - 1, last];
      for (const second of seconds) {
        assert.equal(store.record(ONE, 'jti', last, second), 'seen', `second ${second - iat}`);
      }
    }

    const sender = openSender({ rules, store: new LocalReplayStore(offset + leeway) });
    const ahead = draft();
    ahead.claims.iat = NOW + leeway;
    const proof = sealProof(ahead);
    const at = (nowSeconds: number) => verdictOf(sender, proof, { nowMillis: nowSeconds * 1000 + 999 });

    assert.equal(await at(NOW), 'accepted');
    assert.equal(await at(NOW), 'proof-replayed');
    assert.equal(await at(NOW + leeway + offset), 'proof-replayed');
    assert.equal(await at(NOW + leeway + offset + 1), 'proof-too-old');
  });
}

test('refuses a proof when the store is full, and drops no live entry [docs/dpop.md, E14]', () => {
  const store = new LocalReplayStore(330, 3);
  const record = (jti: string, nowSeconds = NOW) => store.record(ONE, jti, nowSeconds + 330, nowSeconds);
  assert.deepEqual(
    ['a', 'b', 'c', 'd', 'e'].map((jti) => record(jti)),
    ['new', 'new', 'new', 'full', 'full'],
  );
  assert.deepEqual(
    ['a', 'b', 'c', 'd'].map((jti) => record(jti)),
    ['seen', 'seen', 'seen', 'full'],
  );
  assert.deepEqual(
    ['a', 'b', 'c', 'd'].map((jti) => record(jti, NOW + 330)),
    ['seen', 'seen', 'seen', 'full'],
  );
});

test('has room for thousands of proofs by default', () => {
  const store = new LocalReplayStore(330);
  const verdicts = Array.from({ length: 5_000 }, (_, count) =>
    store.record(ONE, `jti ${count}`, NOW + 300, NOW),
  );
  assert.ok(verdicts.every((verdict) => verdict === 'new'));
});

test('regains the room of entries once they have expired [docs/dpop.md]', () => {
  const store = new LocalReplayStore(80, 4);

  const record = (jti: string, expiresAtSeconds: number, nowSeconds: number) =>
    store.record(ONE, jti, expiresAtSeconds, nowSeconds);

  assert.deepEqual(
    [
      record('a', NOW, NOW),
      record('b', NOW + 80, NOW),
      record('c', NOW + 80, NOW),
      record('d', NOW + 80, NOW),
    ],
    ['new', 'new', 'new', 'new'],
  );
  assert.equal(record('e', NOW + 80, NOW), 'full');

  // An eighth of the window later the first has certainly been dropped, and it alone.
  assert.deepEqual(
    ['e', 'f'].map((jti) => record(jti, NOW + 91, NOW + 11)),
    ['new', 'full'],
  );
  assert.deepEqual(
    ['b', 'c', 'd', 'e'].map((jti) => record(jti, NOW + 91, NOW + 11)),
    ['seen', 'seen', 'seen', 'seen'],
  );
  assert.deepEqual(
    ['g', 'h', 'i', 'j', 'k'].map((jti) => record(jti, NOW + 182, NOW + 102)),
    ['new', 'new', 'new', 'new', 'full'],
  );
});

test('regains the room of what has expired, even if what expires later was recorded first [docs/dpop.md]', () => {
  const store = new LocalReplayStore(80, 2);
  assert.equal(store.record(ONE, 'later', NOW + 80, NOW), 'new');
  assert.equal(store.record(ONE, 'sooner', NOW + 10, NOW), 'new');
  assert.equal(store.record(ONE, 'another', NOW + 80, NOW), 'full');
  assert.equal(store.record(ONE, 'another', NOW + 80, NOW + 21), 'new');
  assert.equal(store.record(ONE, 'later', NOW + 80, NOW + 21), 'seen');
});

test('regains room a second after expiry when the window is short', () => {
  for (const windowSeconds of [0, 1, 8]) {
    const store = new LocalReplayStore(windowSeconds, 1);
    const said = [0, 1, 1, 2].map((second) =>
      store.record(ONE, `used in second ${second}`, NOW + second, NOW + second),
    );
    assert.deepEqual(said, ['new', 'new', 'seen', 'new'], `window of ${windowSeconds} s`);
  }
});

test('logs once each time that it becomes full [docs/dpop.md]', () => {
  let told = 0;

  const store = new LocalReplayStore(80, 2, (event) => {
    if (event === 'replay store full') told += 1;
  });

  const tolds = (['a', 'b', 'b', 'c', 'd', 'a'] as const).map((jti) => {
    store.record(ONE, jti, NOW + 80, NOW);
    return told;
  });
  assert.deepEqual(tolds, [0, 1, 1, 1, 1, 1]);

  const later = ['e', 'f', 'g', 'h'].map((jti) => [store.record(ONE, jti, NOW + 280, NOW + 200), told]);
  assert.deepEqual(later, [
    ['new', 1],
    ['new', 2],
    ['full', 2],
    ['full', 2],
  ]);
});

/** An asynchronous store, like a shared one. */
function laterStore(store: Recorder): Recorder {
  return { record: async (...facts): Promise<ReplayVerdict> => store.record(...facts) };
}

for (const [kind, wrap] of [
  ['at once', (store: Recorder) => store],
  ['later', laterStore],
] as const) {
  test(`accepts exactly one of fifty uses of a proof when the store replies ${kind} [RFC 9449 §11.1]`, async () => {
    const sender = openSender({ store: wrap(new LocalReplayStore(330)) });
    const proof = sealProof(draft());
    const verdicts = await Promise.all(Array.from({ length: 50 }, () => verdictOf(sender, proof)));
    const count = (verdict: Verdict) => verdicts.filter((other) => other === verdict).length;
    assert.deepEqual([count('accepted'), count('proof-replayed')], [1, 49]);
  });

  test(`refuses a proof when the store replies ${kind} that it is unavailable`, async () => {
    const store: Recorder = { record: () => 'unavailable' };
    const verdict = await verdictOf(openSender({ store: wrap(store) }), sealProof(draft()));
    assert.equal(verdict, 'replay-store-unavailable');
  });

  test(`refuses a proof when the store replies ${kind} that it is full [docs/dpop.md]`, async () => {
    const sender = openSender({ store: wrap(new LocalReplayStore(330, 1)) });
    const verdicts = [];
    for (const proof of [draft(), draft()].map(sealProof)) {
      verdicts.push(await verdictOf(sender, proof), await verdictOf(sender, proof));
    }

    assert.deepEqual(verdicts, ['accepted', 'proof-replayed', 'replay-store-full', 'replay-store-full']);
  });
}

test('passes to the store the key, the unchanged jti, the last second of the proof and the current one', async () => {
  const jti = ` J\u0000e\u0301 ${'x'.repeat(240)}Y `;
  const records: unknown[][] = [];

  const record = (...facts: unknown[]) => {
    records.push(facts);
    return 'new' as const;
  };

  const ahead = draft();
  Object.assign(ahead.claims, { iat: NOW + 30, jti });
  assert.equal(
    await verdictOf(openSender({ store: { record } }), sealProof(ahead), { nowMillis: NOW * 1000 + 999 }),
    'accepted',
  );
  assert.deepEqual(records, [[key.thumbprint, jti, NOW + 330, NOW]]);
});

test('accepts the same jti with another key and its token', async () => {
  const sender = openSender();
  const second = makeProofKey('EdDSA');
  for (const [signer, token] of [
    [key, boundTo(key.thumbprint)],
    [second, boundTo(second.thumbprint)],
  ] as const) {
    const proof = draft(signer, token);
    proof.claims.jti = 'the same';
    assert.equal(await verdictOf(sender, sealProof(proof), { token }), 'accepted');
    assert.equal(await verdictOf(sender, sealProof(proof), { token }), 'proof-replayed');
  }
});

test('accepts no proof as new that had expired before the clock was set back [RFC 9449 §11.1]', () => {
  const store = new LocalReplayStore(330);
  const thumbprint = 'T'.repeat(43);
  const expiresAtSeconds = 42 * 40_476_190 - 1;
  assert.equal(store.record(thumbprint, 'a', expiresAtSeconds, expiresAtSeconds - 290), 'new');
  assert.equal(store.record(thumbprint, 'other', expiresAtSeconds + 400, expiresAtSeconds + 1), 'new');
  assert.equal(store.record(thumbprint, 'a', expiresAtSeconds, expiresAtSeconds), 'seen');
});

test('accepts none of several as new that had expired then, in whatever order they came [RFC 9449 §11.1]', () => {
  for (const expiries of [
    [NOW + 80, NOW + 5],
    [NOW + 5, NOW + 80],
  ]) {
    const store = new LocalReplayStore(80);
    const uses = expiries.map((expiry) => () => store.record(ONE, `until ${expiry}`, expiry, NOW));
    assert.deepEqual(
      uses.map((use) => use()),
      ['new', 'new'],
    );
    assert.equal(store.record(ONE, 'other', NOW + 180, NOW + 100), 'new');
    assert.deepEqual(
      uses.map((use) => use()),
      ['seen', 'seen'],
    );
  }
});

test('distinguishes identifiers that are not well-formed Unicode [RFC 9449 §11.1]', () => {
  const store = new LocalReplayStore(330);
  const verdicts = ['\ud800', '\ud801', '\ufffd', '\ud800'].map((jti) =>
    store.record('T'.repeat(43), jti, 1_300, 1_000),
  );
  assert.deepEqual(verdicts, ['new', 'new', 'new', 'seen']);
});

test('drops a used proof an eighth of the window after its expiry, and no sooner', () => {
  const store = new LocalReplayStore(80, 1);
  const verdicts = [0, 9, 10].map((second) =>
    store.record('1'.repeat(43), `jti ${second}`, NOW + second, NOW + second),
  );
  assert.deepEqual(verdicts, ['new', 'full', 'new']);
});

test('tells callers to retry in ten seconds when the replay store is full [RFC 9110 §10.2.3]', async () => {
  const verify = await openVerifier(1);
  const sender = openSender({ store: new LocalReplayStore(330, 0) });
  const facts = {
    method: 'GET',
    host: 'inner.test',
    path: PATH,
    rawHeaders: [],
  };

  const present = () =>
    sender(
      atOnce(verify(TOKEN)),
      { scheme: 'DPoP', token: TOKEN, proof: sealProof(draft()) },
      facts,
      NOW * 1000,
    );

  const refused = present();
  assert.ok(refused instanceof Refused);
  const { kind, reason, headers } = refused.refusal;
  assert.deepEqual([kind, reason], ['temporarily_unavailable', 'replay-store-full']);
  assert.deepEqual(headers, ['Retry-After', '10']);
});

test('accepts a proof once at all replicas that share a replay store, and once at each that does not [E3, RFC 9449 §11.1]', async () => {
  const memory = new LocalReplayStore(330);
  const store = { record: async (...what: Parameters<typeof memory.record>) => memory.record(...what) };
  const proof = sealProof(draft(key));

  const at = async (replicas: readonly ReturnType<typeof openSender>[]) =>
    Promise.all(replicas.map((sender) => verdictOf(sender, proof)));

  assert.deepEqual((await at([openSender({ store }), openSender({ store })])).sort(), [
    'accepted',
    'proof-replayed',
  ]);
  assert.deepEqual(await at([openSender(), openSender()]), ['accepted', 'accepted']);
});
