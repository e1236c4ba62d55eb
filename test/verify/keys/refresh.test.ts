/* When keys are fetched and how long they are trusted. After a failure: retry.test.ts. Who waits:
   waiting.test.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aged, HOUR, jwk, KeySetFixture, MINUTE, SECOND } from './key-set-fixture.ts';

test('fetches once when fifty requests need keys at the same time', async () => {
  const fixture = new KeySetFixture();
  const requests = Array.from({ length: 50 }, () => fixture.request('a'));
  await fixture.response(jwk('a'));
  assert.deepEqual([new Set(await Promise.all(requests)), fixture.fetches], [new Set(['found']), 1]);
});

test('lets requests without kid wait until the first keys arrive', async () => {
  const fixture = new KeySetFixture();
  const request = fixture.request();
  await fixture.response(jwk('a'));
  assert.equal(await request, 'found');
});

test('never has two fetches in flight when refresh is called again [F10]', async () => {
  const fixture = new KeySetFixture();
  const first = fixture.keys.refresh();
  assert.equal(fixture.keys.refresh(), first);
  assert.deepEqual([fixture.outcome('a'), fixture.keys.usable() > 0, fixture.fetches], ['waits', false, 1]);
  await fixture.response(jwk('a'));
  await fixture.response(jwk('a'));
  assert.deepEqual([fixture.fetches, fixture.overlap], [2, 1]);
});

const REFRESH: [condition: string, age: number, fetches: number][] = [
  ['does not refresh keys that are a millisecond under 10 minutes old', 10 * MINUTE - 1, 1],
  ['refreshes keys that are 10 minutes old', 10 * MINUTE, 2],
];

const USES: [use: string, asks: (fixture: KeySetFixture) => boolean][] = [
  ['a request', (fixture) => fixture.outcome('a') === 'found'],
  ['readiness', (fixture) => fixture.keys.usable() > 0],
];

for (const [name, age, fetches] of REFRESH) {
  for (const [use, asks] of USES) {
    test(`${name} in the background when ${use} asks for them`, async () => {
      const fixture = await aged(age);
      assert.equal(asks(fixture), true);
      assert.equal(fixture.fetches, fetches);
    });
  }
}

test('does not refresh old keys while no request uses them', async () => {
  const fixture = await aged(59 * MINUTE);
  assert.deepEqual([fixture.fetches, fixture.clock.pending], [1, []]);
});

test('counts the age of keys from the start of their fetch', async () => {
  const fixture = new KeySetFixture();
  void fixture.keys.refresh();
  fixture.clock.advance(4 * SECOND);
  await fixture.response(jwk('a'));
  fixture.clock.advance(10 * MINUTE - 4 * SECOND);
  assert.deepEqual([fixture.outcome('a'), fixture.fetches], ['found', 2]);
});

test('restarts the age of keys when a refresh succeeds', async () => {
  const fixture = await aged(10 * MINUTE);
  await fixture.response(jwk('a'));
  fixture.clock.advance(10 * MINUTE - 1);
  assert.deepEqual([fixture.outcome('a'), fixture.fetches], ['found', 2]);
});

test('refreshes in the background once when many requests use old keys', async () => {
  const fixture = await aged(10 * MINUTE);
  assert.deepEqual(new Set(Array.from({ length: 50 }, () => fixture.outcome('a'))), new Set(['found']));
  assert.equal(fixture.fetches, 2);
});

test('uses old keys for one hour, and then answers 503, when refreshing fails', async () => {
  const fixture = await aged(10 * MINUTE);
  await fixture.fail();
  fixture.clock.advance(50 * MINUTE - 1);
  await fixture.fail();
  assert.deepEqual(
    [fixture.outcome('a'), fixture.outcome(), fixture.keys.usable() > 0],
    ['found', 'found', true],
  );
  fixture.clock.advance(1);
  assert.deepEqual(
    [fixture.outcome('a'), fixture.outcome(), fixture.keys.usable() > 0],
    ['keys-unavailable', 'keys-unavailable', false],
  );
});

test('logs once that the keys have expired, and again after they were replaced', async () => {
  const fixture = await aged(10 * MINUTE);
  for (let round = 1; round <= 2; round += 1) {
    await fixture.fail();
    assert.equal(fixture.logged('signing keys expired').length, round - 1);
    fixture.clock.advance(HOUR);
    for (let ask = 0; ask < 3; ask += 1) fixture.outcome('a');
    assert.equal(fixture.logged('signing keys expired').length, round);
    await fixture.response(jwk('a'));
  }
  assert.deepEqual(fixture.logged('signing keys expired')[0], { level: 'error' });
});

test('does not log that keys have expired when none were held', async () => {
  const fixture = new KeySetFixture();
  await fixture.fail();
  assert.deepEqual([fixture.outcome('a'), fixture.logged('signing keys expired')], ['keys-unavailable', []]);
});

test('uses no key over an hour old after an idle time: the request waits for a fetch', async () => {
  const fixture = await aged(HOUR);
  const requests = [fixture.request('a'), fixture.request('b')];
  assert.deepEqual([fixture.outcome('a'), fixture.fetches], ['waits', 2]);
  await fixture.response(jwk('b', {}, 0x33));
  assert.equal(fixture.outcome('b'), 'found');
  await fixture.response(jwk('b', {}, 0x33));
  assert.deepEqual(await Promise.all(requests), ['key-unknown', 'found']);
  assert.deepEqual(fixture.logged('signing keys expired'), []);
});

for (const [change, millis] of [
  ['back', -3 * HOUR],
  ['forward', 3 * HOUR],
] as const) {
  test(`uses keys for an hour and no longer when the wall clock is set ${change} [F12]`, async () => {
    const fixture = await aged(10 * MINUTE - 1);
    fixture.clock.set(fixture.clock.now() + millis);
    assert.deepEqual([fixture.outcome('a'), fixture.fetches], ['found', 1]);
    fixture.clock.advance(1);
    assert.deepEqual([fixture.outcome('a'), fixture.fetches], ['found', 2]);
    await fixture.fail();
    fixture.clock.advance(50 * MINUTE - 1);
    assert.equal(fixture.outcome('a'), 'found');
    fixture.clock.advance(1);
    assert.notEqual(fixture.outcome('a'), 'found');
  });
}

test('answers 503 after an idle time when the fetch that a request waited for fails', async () => {
  const fixture = await aged(HOUR);
  const request = fixture.request('a');
  await fixture.fail();
  assert.equal(await request, 'keys-unavailable');
});

test('fetches for a kid with an algorithm that no key has, at most once in 5 seconds, and answers 503 only if the fetch failed [RFC 7517 §4.5]', async () => {
  const fixture = await aged();
  const first = fixture.request('a', 'ES256');
  await fixture.response(jwk('a'));
  assert.equal(await first, 'algorithm-refused');
  assert.equal(fixture.outcome('a', 'ES256'), 'algorithm-refused');
  assert.equal(fixture.outcome('b'), 'key-unknown');
  assert.equal(fixture.fetches, 2);

  fixture.clock.advance(5 * SECOND);
  const second = fixture.request('a', 'ES256');
  await fixture.fail();
  assert.equal(await second, 'keys-unavailable');
  assert.equal(fixture.outcome('a', 'RS256'), 'found');
});

test('fetches for an unknown kid at once after the fetch of the first keys [RFC 7517 §4.5]', async () => {
  const fixture = new KeySetFixture();
  const first = fixture.request('a');
  await fixture.response(jwk('a'));
  assert.equal(await first, 'found');

  assert.equal(fixture.outcome('b'), 'waits');
  assert.equal(fixture.fetches, 2);
});
