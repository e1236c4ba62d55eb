// @ts-nocheck until the tests ask as requests do
/* What follows a failed fetch: retries, warnings, and what callers are told. */
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

/** Fails the fetch under way, or one begun now, so many times. */
async function failTimes(stand: Stand, times: number): Promise<void> {
  for (let failure = 0; failure < times; failure += 1) await stand.fail();
}

/** Moves the clock until the retry is due. */
const awaitRetry = ({ clock }: Stand) => clock.advance(clock.pending[0] ?? assert.fail('no retry is due'));

function retryAfter(stand: Stand, kid?: string, waits?: number): number {
  const refusal = stand.look(kid, waits);
  assert.ok('kind' in refusal && refusal.kind === 'temporarily_unavailable');
  return refusal.retryAfterSeconds;
}

test('changes nothing when a refresh fails [F2]', async () => {
  const stand = await standAged(10 * MINUTE);
  const before = stand.keys.find('a', 0);
  await failTimes(stand, 3);
  assert.equal(stand.keys.find('a', 0), before);
  assert.equal(stand.keys.find(undefined, 0), before);
  assert.equal(stand.keys.isReady(), true);
});

for (const [condition, failure] of [
  ['an error of another kind', new TypeError('secret')],
  ['no error', 'secret'],
] as const) {
  test(`counts a fetch that rejects with ${condition} as unforeseen, and logs no text of it`, async () => {
    const stand = await standAged(20 * SECOND);
    await stand.failWith(failure);
    assert.equal(stand.outcome('a'), 'found');
    const expected = { level: 'warn', reason: 'unforeseen', code: '', heldForSeconds: 20 };
    assert.deepEqual(stand.logged('signing keys could not be fetched'), [expected]);
    assert.equal(stand.clock.pending.length, 1);
  });
}

test('retries after a failure when the time has come, and not at the wish of requests', async () => {
  const stand = new Stand();
  await stand.fail();
  const [delay = 0] = stand.clock.pending;
  stand.clock.advance(delay - 1);
  assert.deepEqual(
    [stand.outcome('a'), stand.outcome(), stand.keys.isReady()],
    ['keys-unavailable', 'keys-unavailable', false],
  );
  assert.equal(stand.fetches, 1);
  stand.clock.advance(1);
  assert.deepEqual([stand.outcome('a'), stand.fetches], ['waits', 2]);
});

test('leaves the refresh of old keys to the retry when the last fetch has failed', async () => {
  const stand = await standAged(10 * MINUTE);
  await stand.fail();
  assert.deepEqual([stand.outcome('a'), stand.fetches], ['found', 2]);
  awaitRetry(stand);
  assert.equal(stand.fetches, 3);
});

test('doubles the time between retries from 1 to 30 seconds with a jitter that never exceeds it', async () => {
  const ceilings = [1, 2, 4, 8, 16, 30, 30, 30].map((seconds) => seconds * SECOND);
  const shares: number[] = [];
  let longest = 0;
  for (let replica = 0; replica < 64; replica += 1) {
    const stand = new Stand();
    for (const ceiling of ceilings) {
      await stand.fail();
      const [delay = NaN] = stand.clock.pending;
      shares.push(delay / ceiling);
      longest = Math.max(longest, delay);
      awaitRetry(stand);
    }
  }
  assert.ok(
    shares.every((share) => share > 0.75 && share <= 1),
    `${Math.min(...shares)} to ${Math.max(...shares)}`,
  );
  assert.ok(longest > 29 * SECOND && longest <= 30 * SECOND, `${longest}`);
  assert.ok(Math.max(...shares) > 0.95 && Math.min(...shares) < 0.9, 'the retries of replicas are spread');
});

test('begins again with 1 second when a fetch has succeeded in between', async () => {
  const stand = new Stand();
  await failTimes(stand, 5);
  await stand.answer(jwk('a'));
  await stand.fail();
  assert.ok((stand.clock.pending[0] ?? Infinity) <= SECOND);
});

test('has one retry pending however fetches fail, and none once one has succeeded', async () => {
  const stand = await standAged();
  await failTimes(stand, 3);
  assert.equal(stand.clock.pending.length, 1);
  stand.clock.advance(100);
  await Promise.all([stand.request('unknown'), stand.fail()]);
  assert.equal(stand.clock.pending.length, 1);
  await stand.answer(jwk('a'));
  assert.deepEqual(stand.clock.pending, []);
});

test('joins the fetch under way when the retry comes due during it', async () => {
  const stand = await standAged();
  await stand.fail();
  assert.equal(stand.outcome('unknown'), 'waits');
  awaitRetry(stand);
  assert.deepEqual([stand.fetches, stand.overlap], [3, 1]);
});

test('warns once for each change of state', async () => {
  const stand = new Stand();
  const failures = () => stand.logged('signing keys could not be fetched');
  await failTimes(stand, 3);
  assert.deepEqual(failures(), [{ level: 'warn', reason: 'timeout', code: '', heldForSeconds: null }]);
  await stand.fail('status-refused', '503');
  await stand.fail('status-refused', '503');
  assert.deepEqual(failures().slice(1), [
    { level: 'warn', reason: 'status-refused', code: '503', heldForSeconds: null },
  ]);
  await stand.answer(jwk('a'));
  stand.clock.advance(90 * SECOND);
  await stand.fail('status-refused', '\r\n');
  assert.deepEqual(failures().slice(2), [
    { level: 'warn', reason: 'status-refused', code: '??', heldForSeconds: 90 },
  ]);
});

test('tells callers to come back when the retry is due, in whole seconds', async () => {
  const stand = new Stand();
  await failTimes(stand, 4);
  const [delay = 0] = stand.clock.pending;
  assert.equal(retryAfter(stand), Math.ceil(delay / SECOND));
  stand.clock.advance(delay - 1001);
  assert.equal(retryAfter(stand), 2);
  stand.clock.advance(1);
  assert.equal(retryAfter(stand), 1);
  stand.clock.advance(1001);
  assert.equal(retryAfter(stand, 'a', 2), 1, 'never less than a second');
});

test('tells callers to come back within 30 seconds when the wall clock is set back', async () => {
  const stand = new Stand();
  await stand.fail();
  stand.clock.advance(-HOUR);
  assert.equal(retryAfter(stand), 30);
});
