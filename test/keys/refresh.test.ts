// @ts-nocheck until the tests ask as requests do
/* When keys are fetched and how long they are trusted. What follows a failure: retry.test.ts; who waits: waiting.test.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HOUR, jwk, MINUTE, SECOND, Stand } from './stand.ts';

/** A stand that holds the key `a`, fetched this many milliseconds ago. */
async function standAged(millis = 0): Promise<Stand> {
  const stand = new Stand();
  await stand.answer(jwk('a'));
  stand.clock.advance(millis);
  return stand;
}

test('fetches once when fifty requests need keys at the same time', async () => {
  const stand = new Stand();
  const requests = Array.from({ length: 50 }, () => stand.request('a'));
  await stand.answer(jwk('a'));
  assert.deepEqual([new Set(await Promise.all(requests)), stand.fetches], [new Set(['found']), 1]);
});

test('lets requests without kid wait when no keys are held yet', async () => {
  const stand = new Stand();
  const request = stand.request();
  await stand.answer(jwk('a'));
  assert.equal(await request, 'found');
});

test('never has two fetches under way when it is told to refresh again [F10]', async () => {
  const stand = new Stand();
  const first = stand.keys.refresh();
  assert.equal(stand.keys.refresh(), first);
  assert.deepEqual([stand.outcome('a'), stand.keys.isReady(), stand.fetches], ['waits', false, 1]);
  await stand.answer(jwk('a'));
  await stand.answer(jwk('a'));
  assert.deepEqual([stand.fetches, stand.overlap], [2, 1]);
});

const REFRESH: [condition: string, age: number, fetches: number][] = [
  ['does not refresh keys that are a millisecond under 10 minutes old', 10 * MINUTE - 1, 1],
  ['refreshes keys that are 10 minutes old', 10 * MINUTE, 2],
];

const USES: [use: string, asks: (stand: Stand) => boolean][] = [
  ['a request', (stand) => stand.outcome('a') === 'found'],
  ['readiness', (stand) => stand.keys.isReady()],
];

for (const [name, age, fetches] of REFRESH) {
  for (const [use, asks] of USES) {
    test(`${name} in the background when ${use} asks for them`, async () => {
      const stand = await standAged(age);
      assert.equal(asks(stand), true);
      assert.equal(stand.fetches, fetches);
    });
  }
}

test('does not refresh old keys while nobody uses them', async () => {
  const stand = await standAged(59 * MINUTE);
  assert.deepEqual([stand.fetches, stand.clock.pending], [1, []]);
});

test('counts the age of keys from the start of their fetch', async () => {
  const stand = new Stand();
  void stand.keys.refresh();
  stand.clock.advance(4 * SECOND);
  await stand.answer(jwk('a'));
  stand.clock.advance(10 * MINUTE - 4 * SECOND);
  assert.deepEqual([stand.outcome('a'), stand.fetches], ['found', 2]);
});

test('counts the age of keys anew when a refresh succeeds', async () => {
  const stand = await standAged(10 * MINUTE);
  await stand.answer(jwk('a'));
  stand.clock.advance(10 * MINUTE - 1);
  assert.deepEqual([stand.outcome('a'), stand.fetches], ['found', 2]);
});

test('refreshes in the background once when many requests use old keys', async () => {
  const stand = await standAged(10 * MINUTE);
  assert.deepEqual(new Set(Array.from({ length: 50 }, () => stand.outcome('a'))), new Set(['found']));
  assert.equal(stand.fetches, 2);
});

test('uses stale keys until they are one hour old and then is unavailable when refreshing fails', async () => {
  const stand = await standAged(10 * MINUTE);
  await stand.fail();
  stand.clock.advance(50 * MINUTE - 1);
  await stand.fail();
  assert.deepEqual([stand.outcome('a'), stand.outcome(), stand.keys.isReady()], ['found', 'found', true]);
  stand.clock.advance(1);
  assert.deepEqual(
    [stand.outcome('a'), stand.outcome(), stand.keys.isReady()],
    ['keys-unavailable', 'keys-unavailable', false],
  );
});

test('logs once that the keys have expired, and again after they were replaced', async () => {
  const stand = await standAged(10 * MINUTE);
  for (let round = 1; round <= 2; round += 1) {
    await stand.fail();
    assert.equal(stand.logged('signing keys expired').length, round - 1);
    stand.clock.advance(HOUR);
    for (let ask = 0; ask < 3; ask += 1) stand.outcome('a');
    assert.equal(stand.logged('signing keys expired').length, round);
    await stand.answer(jwk('a'));
  }
  assert.deepEqual(stand.logged('signing keys expired')[0], { level: 'error', reason: 'keys-too-old' });
});

test('does not log that keys have expired when none were held', async () => {
  const stand = new Stand();
  await stand.fail();
  assert.deepEqual([stand.outcome('a'), stand.logged('signing keys expired')], ['keys-unavailable', []]);
});

test('uses no key over an hour old after an idle time: the request waits for a fetch', async () => {
  const stand = await standAged(HOUR);
  const requests = [stand.request('a'), stand.request('b')];
  assert.deepEqual([stand.outcome('a'), stand.fetches], ['waits', 2]);
  await stand.answer(jwk('b', {}, 0x33));
  assert.deepEqual([stand.outcome('b'), stand.outcome('a', 2)], ['found', 'key-unknown']);
  await stand.answer(jwk('b', {}, 0x33));
  assert.deepEqual(await Promise.all(requests), ['key-unknown', 'found']);
});

test('is unavailable after an idle time when the fetch that the request waited for fails', async () => {
  const stand = await standAged(HOUR);
  const request = stand.request('a');
  await stand.fail();
  assert.equal(await request, 'keys-unavailable');
});
