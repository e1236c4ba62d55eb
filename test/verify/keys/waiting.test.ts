/* Unknown key identifiers, rotation, and requests that wait for a fetch. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unavailable } from '../../../src/verify/base/refusal.ts';
import { atOnce } from '../../support/clock.ts';
import { aged, HOUR, jwk, KeySetFixture, MINUTE, SECOND } from './key-set-fixture.ts';

const rotated = [jwk('a'), jwk('b', {}, 0x33)];

test('accepts a new key at first sight', async () => {
  const fixture = await aged();
  const request = fixture.request('b');
  await fixture.response(...rotated);
  assert.deepEqual([await request, fixture.fetches], ['found', 2]);
});

const UNDER_WAY: [condition: string, begin: (fixture: KeySetFixture) => void][] = [
  [
    'the retry after a failure',
    (fixture) => fixture.clock.advance(fixture.clock.pending[0] ?? assert.fail()),
  ],
  ['a refresh of old keys', (fixture) => void fixture.outcome('a')],
];

for (const [index, [condition, begin]] of UNDER_WAY.entries()) {
  test(`accepts a new key at first sight while ${condition}, begun before the rotation, is running`, async () => {
    const fixture = await aged();
    if (index === 0) await fixture.fail();
    else fixture.clock.advance(10 * MINUTE);
    const before = fixture.fetches;
    begin(fixture);
    const request = fixture.request('b');
    assert.equal(fixture.fetches, before + 1);
    await fixture.response(jwk('a'));
    await fixture.response(...rotated);
    assert.deepEqual([await request, fixture.fetches], ['found', before + 2]);
  });
}

test('accepts a new key at first sight while the first fetch of all, begun before the rotation, is running', async () => {
  const fixture = new KeySetFixture();
  const request = fixture.request('b');
  await fixture.response(jwk('a'));
  await fixture.response(...rotated);
  assert.deepEqual([await request, fixture.fetches], ['found', 2]);
});

test('accepts a new key at first sight while a fetch for lack of keys, begun before the rotation, is running', async () => {
  const fixture = new KeySetFixture();
  await fixture.fail();
  // After the fourth error, the next retry is over five seconds away.
  for (let count = 1; count < 4; count += 1) {
    fixture.clock.advance(fixture.clock.pending[0] ?? assert.fail());
    await fixture.fail();
  }
  fixture.clock.advance(5 * SECOND);
  const before = fixture.fetches;
  const request = fixture.request('b');
  assert.equal(fixture.fetches, before + 1);
  await fixture.response(jwk('a'));
  await fixture.response(...rotated);
  assert.deepEqual([await request, fixture.fetches], ['found', before + 2]);
});

test('refuses a kid that is still unknown after one fetch of its own [A3]', async () => {
  const fixture = await aged();
  const request = fixture.request('b');
  await fixture.response(jwk('a'));
  assert.deepEqual([await request, fixture.fetches], ['key-unknown', 2]);
});

test('answers 503 to every unknown kid that may cause no fetch, and fetches as soon as one may [§23]', async () => {
  const fixture = await aged();
  fixture.mayFetchForKid = false;
  for (const kid of ['b', 'b', 'c']) assert.equal(fixture.outcome(kid), 'keys-unavailable');
  fixture.mayFetchForKid = true;
  assert.deepEqual([fixture.outcome('b'), fixture.fetches], ['waits', 2]);
});

test('answers 503 to an unknown kid when the last fetch failed', async () => {
  const fixture = await aged();
  const request = fixture.request('b');
  await fixture.fail();
  assert.deepEqual(
    [await request, fixture.outcome('b'), fixture.outcome('a')],
    ['keys-unavailable', 'keys-unavailable', 'found'],
  );
});

test('answers 401 again to an unknown kid once a fetch has succeeded', async () => {
  const fixture = await aged();
  await fixture.fail();
  await fixture.response(jwk('a'));
  assert.equal(await fixture.verdict('b'), 'key-unknown');
});

test('fetches for an unknown kid even when the next retry is far away, since the key may be new', async () => {
  const fixture = await aged();
  for (let failure = 0; failure < 6; failure += 1) await fixture.fail();
  const request = fixture.request('b');
  await fixture.response(...rotated);
  assert.equal(await request, 'found');
});

test('fetches for unknown kids again only 5 seconds after the start of the last such fetch', async () => {
  const fixture = await aged();
  assert.equal(fixture.outcome('b'), 'waits');
  fixture.clock.advance(3 * SECOND);
  await fixture.response(jwk('a'));
  fixture.clock.advance(2 * SECOND - 1);
  assert.deepEqual(
    [fixture.outcome('b'), fixture.outcome('c'), fixture.fetches],
    ['key-unknown', 'key-unknown', 2],
  );
  fixture.clock.advance(1);
  assert.deepEqual([fixture.outcome('c'), fixture.fetches], ['waits', 3]);
  await fixture.response(jwk('a'));
  fixture.clock.advance(5 * SECOND - 1);
  assert.deepEqual([fixture.outcome('b'), fixture.fetches], ['key-unknown', 3]);
});

test('counts the 5 seconds from a fetch for an unknown kid when that fetch failed', async () => {
  const fixture = await aged();
  assert.equal(fixture.outcome('b'), 'waits');
  await fixture.fail();
  fixture.clock.advance(500);
  assert.deepEqual([fixture.outcome('c'), fixture.fetches], ['keys-unavailable', 2]);
});

test('lets an unknown kid wait for a fetch begun for another reason, and fetches again if its key is still missing afterwards', async () => {
  const fixture = await aged();
  fixture.clock.advance(10 * MINUTE);
  assert.equal(fixture.outcome('a'), 'found');
  assert.deepEqual([fixture.outcome('b'), fixture.fetches], ['waits', 2]);
  await fixture.response(jwk('a'));
  assert.deepEqual([fixture.outcome('b'), fixture.fetches], ['waits', 3]);
});

test('fetches at most once in 5 seconds for ten thousand invented kids, and serves known ones at once meanwhile [F1]', async () => {
  const fixture = await aged();
  const outcomes = new Map<string, number>();
  for (let count = 0; count < 10_000; count += 1) {
    const outcome = fixture.outcome(`made-up-${count}`);
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    if (count % 1000 === 0) assert.equal(fixture.outcome('a'), 'found');
  }
  assert.deepEqual(
    [outcomes, fixture.fetches],
    [
      new Map([
        ['waits', 1000],
        ['too-many-waiting', 9000],
      ]),
      2,
    ],
  );
  await fixture.response(jwk('a'));
  assert.deepEqual(
    [fixture.outcome('made-up'), fixture.outcome('a'), fixture.fetches],
    ['key-unknown', 'found', 2],
  );
});

test('lets 1,000 requests wait for a fetch, tells further ones to retry in a second, and starts counting again with the next fetch', async () => {
  const fixture = new KeySetFixture();
  for (let round = 0; round < 2; round += 1) {
    const outcomes = new Set(Array.from({ length: 1000 }, () => fixture.outcome('a')));
    assert.deepEqual(outcomes, new Set(['waits']));
    assert.deepEqual(atOnce(fixture.look('a')), unavailable('too-many-waiting', 1).refusal);
    assert.equal(fixture.fetches, round + 1);
    await fixture.response(jwk('a'));
    fixture.clock.advance(HOUR);
  }
});

test('answers the requests that waited when the fetch fails', async () => {
  const fixture = new KeySetFixture();
  const requests = Array.from({ length: 20 }, () => fixture.request('a'));
  await fixture.fail();
  assert.deepEqual(new Set(await Promise.all(requests)), new Set(['keys-unavailable']));
});

test('counts requests that wait for a second fetch among the same 1,000', async () => {
  const fixture = await aged(10 * MINUTE);
  assert.equal(fixture.outcome('a'), 'found');
  const requests = Array.from({ length: 1000 }, () => fixture.request('b'));
  await fixture.response(jwk('a'));
  await new Promise(setImmediate);
  assert.deepEqual([fixture.outcome('c'), fixture.fetches], ['too-many-waiting', 3]);
  await fixture.response(...rotated);
  assert.deepEqual(new Set(await Promise.all(requests)), new Set(['found']));
});

const FAILING: [condition: string, prepare: () => Promise<KeySetFixture>, kid: string | undefined][] = [
  ['no keys are held', async () => new KeySetFixture(), 'a'],
  ['no keys are held and the request names none', async () => new KeySetFixture(), undefined],
  ['its kid is unknown', aged, 'b'],
  ['the keys are too old', () => aged(HOUR), 'a'],
];

for (const [condition, prepare, kid] of FAILING) {
  test(`lets a request wait for a failing fetch, but not for a second one, when ${condition}`, async () => {
    const fixture = await prepare();
    void fixture.keys.refresh();
    const request = fixture.request(kid);
    const { fetches } = fixture;
    await fixture.fail();
    assert.deepEqual([await request, fixture.fetches], ['keys-unavailable', fetches]);
  });
}

test('lets a request wait for a fetch that succeeds and then for one that fails', async () => {
  const fixture = await aged();
  void fixture.keys.refresh();
  const request = fixture.request('b');
  await fixture.response(jwk('a'));
  await fixture.fail();
  assert.deepEqual([await request, fixture.fetches], ['keys-unavailable', 3]);
});

test('lets a request wait for at most two fetches, even if both succeed', async () => {
  const fixture = await aged();
  void fixture.keys.refresh();
  const request = fixture.request('b');
  await fixture.response(jwk('a'));
  fixture.clock.advance(5 * SECOND);
  await fixture.response(jwk('a'));
  assert.deepEqual([await request, fixture.fetches], ['key-unknown', 3]);
});

test('does not let a request without kid wait for a fetch while several keys are held', async () => {
  const fixture = await aged();
  await fixture.response(...rotated);
  void fixture.keys.refresh();
  assert.equal(fixture.outcome(), 'key-unknown');
});

for (const [change, millis] of [
  ['back', -HOUR],
  ['forward', HOUR],
] as const) {
  test(`fetches for unknown kids once in 5 seconds when the wall clock is set ${change}`, async () => {
    const fixture = await aged();
    assert.equal(await fixture.verdict('b'), 'key-unknown');
    fixture.clock.set(fixture.clock.now() + millis);
    fixture.clock.advance(5 * SECOND - 1);
    assert.deepEqual([fixture.outcome('b'), fixture.fetches], ['key-unknown', 2]);
    fixture.clock.advance(1);
    assert.deepEqual([fixture.outcome('b'), fixture.fetches], ['waits', 3]);
  });
}
