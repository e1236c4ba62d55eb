// @ts-nocheck until the tests ask as requests do
/* Unknown key identifiers, rotation, and the requests that wait for a fetch. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeysPending } from '../../src/keys/key-set.ts';
import { HOUR, jwk, MINUTE, SECOND, Stand } from './stand.ts';

/** A stand that holds the key `a`. */
async function standHolding(): Promise<Stand> {
  const stand = new Stand();
  await stand.answer(jwk('a'));
  return stand;
}

const rotated = [jwk('a'), jwk('b', {}, 0x33)];

test('accepts a key rotated in on first sight', async () => {
  const stand = await standHolding();
  const request = stand.request('b');
  await stand.answer(...rotated);
  assert.deepEqual([await request, stand.fetches], ['found', 2]);
});

const UNDER_WAY: [condition: string, begin: (stand: Stand) => void][] = [
  ['the retry after a failure', (stand) => stand.clock.advance(stand.clock.pending[0] ?? assert.fail())],
  ['a refresh of old keys', (stand) => void stand.outcome('a')],
];

for (const [index, [condition, begin]] of UNDER_WAY.entries()) {
  test(`accepts a key rotated in on first sight while ${condition} is under way that began before the rotation`, async () => {
    const stand = await standHolding();
    if (index === 0) await stand.fail();
    else stand.clock.advance(10 * MINUTE);
    const before = stand.fetches;
    begin(stand);
    const request = stand.request('b');
    assert.equal(stand.fetches, before + 1);
    await stand.answer(jwk('a'));
    await stand.answer(...rotated);
    assert.deepEqual([await request, stand.fetches], ['found', before + 2]);
  });
}

test('accepts a key rotated in on first sight while the very first fetch is under way that began before the rotation', async () => {
  const stand = new Stand();
  const request = stand.request('b');
  await stand.answer(jwk('a'));
  await stand.answer(...rotated);
  assert.deepEqual([await request, stand.fetches], ['found', 2]);
});

test('refuses a kid that is still unknown after one fetch of its own [A3]', async () => {
  const stand = await standHolding();
  const request = stand.request('b');
  await stand.answer(jwk('a'));
  assert.deepEqual([await request, stand.fetches], ['key-unknown', 2]);
});

test('answers 503 to a kid that is still unknown when the last fetch failed', async () => {
  const stand = await standHolding();
  const request = stand.request('b');
  await stand.fail();
  assert.deepEqual(
    [await request, stand.outcome('b'), stand.outcome('a')],
    ['keys-unavailable', 'keys-unavailable', 'found'],
  );
});

test('answers 401 again to an unknown kid when a fetch has succeeded after a failed one', async () => {
  const stand = await standHolding();
  await stand.fail();
  await stand.answer(jwk('a'));
  assert.equal(stand.outcome('b', 2), 'key-unknown');
});

test('fetches for an unknown kid while the next retry is still far, since a rotated key may be all that is missing', async () => {
  const stand = await standHolding();
  for (let failure = 0; failure < 6; failure += 1) await stand.fail();
  const request = stand.request('b');
  await stand.answer(...rotated);
  assert.equal(await request, 'found');
});

test('fetches for unknown kids again when 5 seconds have passed since the start of the last such fetch, not before', async () => {
  const stand = await standHolding();
  assert.equal(stand.outcome('b'), 'waits');
  stand.clock.advance(3 * SECOND);
  await stand.answer(jwk('a'));
  stand.clock.advance(2 * SECOND - 1);
  assert.deepEqual(
    [stand.outcome('b'), stand.outcome('c'), stand.fetches],
    ['key-unknown', 'key-unknown', 2],
  );
  stand.clock.advance(1);
  assert.deepEqual([stand.outcome('c'), stand.fetches], ['waits', 3]);
  await stand.answer(jwk('a'));
  stand.clock.advance(5 * SECOND - 1);
  assert.deepEqual([stand.outcome('b'), stand.fetches], ['key-unknown', 3]);
});

test('counts the 5 seconds from a fetch for an unknown kid when that fetch failed', async () => {
  const stand = await standHolding();
  assert.equal(stand.outcome('b'), 'waits');
  await stand.fail();
  stand.clock.advance(500);
  assert.deepEqual([stand.outcome('c'), stand.fetches], ['keys-unavailable', 2]);
});

test('lets unknown kids share a fetch of another cause without spending their own', async () => {
  const stand = await standHolding();
  stand.clock.advance(10 * MINUTE);
  assert.equal(stand.outcome('a'), 'found');
  assert.deepEqual([stand.outcome('b'), stand.fetches], ['waits', 2]);
  await stand.answer(jwk('a'));
  assert.deepEqual([stand.outcome('b'), stand.fetches], ['waits', 3]);
});

test('fetches at most once in 5 seconds when ten thousand kids are made up, and answers known ones at once meanwhile [F1]', async () => {
  const stand = await standHolding();
  const outcomes = new Map<string, number>();
  for (let count = 0; count < 10_000; count += 1) {
    const outcome = stand.outcome(`made-up-${count}`);
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    if (count % 1000 === 0) assert.equal(stand.outcome('a'), 'found');
  }
  assert.deepEqual(
    [outcomes, stand.fetches],
    [
      new Map([
        ['waits', 1000],
        ['too-many-waiting', 9000],
      ]),
      2,
    ],
  );
  await stand.answer(jwk('a'));
  assert.deepEqual(
    [stand.outcome('made-up'), stand.outcome('a'), stand.fetches],
    ['key-unknown', 'found', 2],
  );
});

test('lets 1,000 requests wait for a fetch, turns the next away for a second, and counts anew for the next fetch', async () => {
  const stand = new Stand();
  for (let round = 0; round < 2; round += 1) {
    const outcomes = new Set(Array.from({ length: 1000 }, () => stand.outcome('a')));
    assert.deepEqual(outcomes, new Set(['waits']));
    assert.deepEqual(stand.look('a'), {
      kind: 'temporarily_unavailable',
      reason: 'too-many-waiting',
      retryAfterSeconds: 1,
    });
    assert.equal(stand.fetches, round + 1);
    await stand.answer(jwk('a'));
    stand.clock.advance(HOUR);
  }
});

test('lets the requests that waited go when the fetch fails', async () => {
  const stand = new Stand();
  const requests = Array.from({ length: 20 }, () => stand.request('a'));
  await stand.fail();
  assert.deepEqual(new Set(await Promise.all(requests)), new Set(['keys-unavailable']));
});

test('gives a promise that never rejects and settles only once the outcome shows', async () => {
  const stand = new Stand();
  const pending = stand.look('a');
  assert.ok(pending instanceof KeysPending);
  const seen = pending.settled.then(() => stand.outcome('a'));
  await stand.fail();
  assert.equal(await seen, 'keys-unavailable');
});

const WAITS: [condition: string, prepare: () => Promise<Stand>, kid: string, outcomes: string[]][] = [
  ['no keys are held', () => Promise.resolve(new Stand()), 'a', ['waits', 'waits', 'keys-unavailable']],
  ['its kid is unknown', standHolding, 'b', ['waits', 'waits', 'key-unknown']],
];

for (const [condition, prepare, kid, outcomes] of WAITS) {
  test(`lets a request wait twice and no more when ${condition} and a fetch is under way`, async () => {
    const stand = await prepare();
    void stand.keys.refresh();
    assert.deepEqual(
      [0, 1, 2].map((waits) => stand.outcome(kid, waits)),
      outcomes,
    );
  });
}

test('starts no fetch for a request that has waited twice when its kid is unknown', async () => {
  const stand = await standHolding();
  assert.deepEqual([stand.outcome('b', 2), stand.fetches], ['key-unknown', 1]);
});
