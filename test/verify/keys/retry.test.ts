/* What follows a failed fetch: retries, warnings, and Retry-After. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { atOnce } from '../../support/clock.ts';
import { aged, HOUR, jwk, KeySetFixture, MINUTE, SECOND } from './key-set-fixture.ts';

/** Fails the running fetch, or a new one, this many times. */
async function failTimes(fixture: KeySetFixture, times: number): Promise<void> {
  for (let failure = 0; failure < times; failure += 1) await fixture.fail();
}

/** Moves the clock until the retry is due. */
const awaitRetry = ({ clock }: KeySetFixture) =>
  clock.advance(clock.pending[0] ?? assert.fail('no retry is pending'));

function retryAfter(fixture: KeySetFixture, kid?: string): number {
  const refusal = atOnce(fixture.look(kid));
  assert.ok('kind' in refusal && refusal.kind === 'temporarily_unavailable');
  return Number(refusal.headers?.[1]);
}

test('keeps the keys held when a refresh fails [F2]', async () => {
  const fixture = await aged(10 * MINUTE);
  await failTimes(fixture, 3);
  assert.deepEqual(
    [fixture.outcome('a'), fixture.outcome(), fixture.keys.usable() > 0],
    ['found', 'found', true],
  );
});

const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};

for (const [condition, failure, bug] of [
  ['an error of another kind', new TypeError('secret'), { error: 'TypeError', frames: true }],
  ['a string', 'secret', { error: 'string', frames: false }],
  ['undefined', undefined, { error: 'undefined', frames: false }],
  ['an unreadable value', revoked(), { error: 'object', frames: false }],
] as const) {
  test(`logs a fetch that rejects with ${condition} as it logs any bug, without its text [docs/keys.md]`, async () => {
    const fixture = await aged(20 * SECOND);
    await fixture.failWith(failure);
    assert.equal(fixture.outcome('a'), 'found');
    const [{ error, frames, ...line } = {}, ...others] = fixture.logged('signing keys could not be fetched');
    assert.deepEqual(line, { level: 'warn', reason: 'unforeseen', code: '', heldForSeconds: 20 });
    assert.deepEqual({ error, frames: frames !== undefined }, bug);
    if (bug.frames) assert.match(String(frames), /^[^,]*retry\.test\.[jt]s:\d+:\d+/);
    assert.deepEqual(others, []);
    assert.deepEqual(fixture.results, ['ok', 'unforeseen']);
    assert.equal(fixture.clock.pending.length, 1);
  });
}

test('retries when the pause is over, and not for requests within 5 seconds of a failure', async () => {
  const fixture = new KeySetFixture();
  await fixture.fail();
  const [delay = 0] = fixture.clock.pending;
  fixture.clock.advance(delay - 1);
  assert.deepEqual(
    [fixture.outcome('a'), fixture.outcome(), fixture.keys.usable() > 0],
    ['keys-unavailable', 'keys-unavailable', false],
  );
  assert.equal(fixture.fetches, 1);
  fixture.clock.advance(1);
  assert.deepEqual([fixture.outcome('a'), fixture.fetches], ['waits', 2]);
});

for (const [condition, prepare] of [
  ['none were ever held', async () => new KeySetFixture()],
  ['those held are too old', () => aged(HOUR)],
] as const) {
  test(`fetches keys for a request when ${condition}, but not within 5 seconds after the last fetch ended [§7]`, async () => {
    const fixture = await prepare();
    await failTimes(fixture, 5);
    void fixture.keys.refresh();
    fixture.clock.advance(5 * SECOND);
    await fixture.fail();
    const { fetches } = fixture;

    fixture.clock.advance(5 * SECOND - 1);
    const early = [fixture.outcome('a'), fixture.outcome(), fixture.fetches];
    assert.deepEqual(early, ['keys-unavailable', 'keys-unavailable', fetches]);
    fixture.clock.advance(1);
    const requests = [fixture.request('a'), fixture.request(), fixture.request('a')];
    assert.equal(fixture.fetches, fetches + 1);
    await fixture.response(jwk('a'));
    assert.deepEqual(await Promise.all(requests), ['found', 'found', 'found']);
    assert.deepEqual([fixture.clock.pending, fixture.fetches], [[], fetches + 1]);
  });
}

test('fetches for requests at most once in 5 seconds while no keys are held, however many come [§7]', async () => {
  const fixture = new KeySetFixture();
  await failTimes(fixture, 6);
  for (let attempt = 7; attempt <= 9; attempt += 1) {
    fixture.clock.advance(5 * SECOND - 1);
    assert.deepEqual([fixture.outcome('a'), fixture.fetches], ['keys-unavailable', attempt - 1]);
    fixture.clock.advance(1);
    const requests = Array.from({ length: 50 }, () => fixture.request('a'));
    await fixture.fail();
    assert.deepEqual(new Set(await Promise.all(requests)), new Set(['keys-unavailable']));
    assert.deepEqual([fixture.outcome('a'), fixture.fetches], ['keys-unavailable', attempt]);
  }
});

test('does not fetch for requests while keys are held, even 5 seconds after the last failure', async () => {
  const fixture = await aged(10 * MINUTE);
  await failTimes(fixture, 6);
  fixture.clock.advance(5 * SECOND);
  assert.deepEqual([fixture.outcome('a'), fixture.outcome(), fixture.fetches], ['found', 'found', 7]);
});

for (const [when, isEarly] of [
  ['after a fetch that failed', false],
  ['during a fetch that fails', true],
] as const) {
  test(`does not retry once it is closed ${when}`, async () => {
    const fixture = new KeySetFixture();
    const failed = fixture.fail();
    if (!isEarly) await failed;
    fixture.keys.close();
    await failed;
    assert.deepEqual(fixture.clock.pending, []);
    assert.equal(fixture.fetches, 1);
  });
}

test('leaves the refresh of old keys to the retry when the last fetch has failed', async () => {
  const fixture = await aged(10 * MINUTE);
  await fixture.fail();
  assert.deepEqual([fixture.outcome('a'), fixture.fetches], ['found', 2]);
  awaitRetry(fixture);
  assert.equal(fixture.fetches, 3);
});

test('doubles the time between retries from 1 to 30 seconds, and jitter only ever shortens it', async () => {
  const ceilings = [1, 2, 4, 8, 16, 30, 30, 30].map((seconds) => seconds * SECOND);
  const shares: number[] = [];
  let longest = 0;
  for (let replica = 0; replica < 64; replica += 1) {
    const fixture = new KeySetFixture();
    for (const ceiling of ceilings) {
      await fixture.fail();
      const [delay = NaN] = fixture.clock.pending;
      shares.push(delay / ceiling);
      longest = Math.max(longest, delay);
      awaitRetry(fixture);
    }
  }
  assert.ok(
    shares.every((share) => share > 0.75 && share <= 1),
    `${Math.min(...shares)} to ${Math.max(...shares)}`,
  );
  assert.ok(longest > 29 * SECOND && longest <= 30 * SECOND, `${longest}`);
  assert.ok(Math.max(...shares) > 0.95 && Math.min(...shares) < 0.9, 'the retries of replicas are spread');
});

test('restarts the delays between retries at 1 second once a fetch has succeeded', async () => {
  const fixture = new KeySetFixture();
  await failTimes(fixture, 5);
  await fixture.response(jwk('a'));
  await fixture.fail();
  assert.ok((fixture.clock.pending[0] ?? Infinity) <= SECOND);
});

test('has one retry pending however often fetches fail, and none once one has succeeded', async () => {
  const fixture = await aged();
  await failTimes(fixture, 3);
  assert.equal(fixture.clock.pending.length, 1);
  fixture.clock.advance(100);
  await Promise.all([fixture.request('unknown'), fixture.fail()]);
  assert.equal(fixture.clock.pending.length, 1);
  await fixture.response(jwk('a'));
  assert.deepEqual(fixture.clock.pending, []);
});

test('joins the running fetch when the time of the retry comes during it', async () => {
  const fixture = await aged();
  await fixture.fail();
  assert.equal(fixture.outcome('unknown'), 'waits');
  awaitRetry(fixture);
  assert.deepEqual([fixture.fetches, fixture.overlap], [3, 1]);
});

test('warns once for each change of state', async () => {
  const fixture = new KeySetFixture();
  const failures = () => fixture.logged('signing keys could not be fetched');
  await failTimes(fixture, 3);
  assert.deepEqual(failures(), [{ level: 'warn', reason: 'timeout', code: '', heldForSeconds: null }]);
  await fixture.fail('status-refused', '503');
  await fixture.fail('status-refused', '503');
  assert.deepEqual(failures().slice(1), [
    { level: 'warn', reason: 'status-refused', code: '503', heldForSeconds: null },
  ]);
  await fixture.response(jwk('a'));
  fixture.clock.advance(90 * SECOND);
  await fixture.fail('status-refused', '\r\n');
  assert.deepEqual(failures().slice(2), [
    { level: 'warn', reason: 'status-refused', code: '??', heldForSeconds: 90 },
  ]);
});

test('tells callers to retry at the time of the next attempt, in whole seconds', async () => {
  const fixture = new KeySetFixture();
  await failTimes(fixture, 3);
  const [delay = 0] = fixture.clock.pending;
  assert.equal(retryAfter(fixture), Math.ceil(delay / SECOND));
  fixture.clock.advance(delay - 1001);
  assert.equal(retryAfter(fixture), 2);
  fixture.clock.advance(2);
  assert.equal(retryAfter(fixture), 1);
});

test('tells callers to retry when a request may cause a fetch, if that is sooner than the next attempt', async () => {
  const fixture = new KeySetFixture();
  await failTimes(fixture, 6);
  assert.equal(retryAfter(fixture), 5);
  fixture.clock.advance(3 * SECOND + 1);
  assert.equal(retryAfter(fixture), 2);
});

test('tells callers with an unknown kid to retry at the time of the next attempt, however far away', async () => {
  const fixture = await aged();
  await failTimes(fixture, 6);
  assert.equal(await fixture.verdict('b'), 'keys-unavailable');
  const [delay = 0] = fixture.clock.pending;
  assert.equal(retryAfter(fixture, 'b'), Math.ceil(delay / SECOND));
});

for (const [condition, prepare, kid] of [
  ['no keys are held', async () => new KeySetFixture(), 'a'],
  ['their kid is unknown', () => aged(MINUTE), 'new'],
] as const) {
  test(`tells callers to retry when a request may cause a fetch, once it is closed and nothing else does, and ${condition} [RFC 9110 §10.2.3]`, async () => {
    const fixture = await prepare();
    fixture.keys.close();
    await fixture.fail();
    if (kid === 'new') assert.equal(await fixture.verdict(kid), 'keys-unavailable');
    assert.equal(retryAfter(fixture, kid), 5);
    fixture.clock.advance(3 * SECOND);
    assert.equal(retryAfter(fixture, kid), 2);
  });
}

test('tells callers to retry in a second when the next attempt is overdue', async () => {
  const fixture = new KeySetFixture();
  fixture.clock.after = () => () => {};
  await fixture.fail();
  fixture.clock.advance(2 * SECOND);
  assert.equal(retryAfter(fixture), 1);
});

for (const [change, millis] of [
  ['back', -HOUR],
  ['forward', HOUR],
] as const) {
  test(`keeps its retries and their Retry-After when the wall clock is set ${change}`, async () => {
    const fixture = new KeySetFixture();
    await failTimes(fixture, 4);
    const before = retryAfter(fixture);
    fixture.clock.set(fixture.clock.now() + millis);
    assert.equal(retryAfter(fixture), before);
    awaitRetry(fixture);
    assert.equal(fixture.fetches, 5);
  });
}

for (const [random, shares] of [
  [0, [0.8, 1.6, 3.2, 6.4, 12.8, 24, 24]],
  [0.5, [0.9, 1.8, 3.6, 7.2, 14.4, 27, 27]],
  [1 - 2 ** -53, [1, 2, 4, 8, 16, 30, 30]],
] as const) {
  test(`waits 80 to 100 percent of the time between retries when Math.random returns ${random}`, async () => {
    const chance = Math.random;
    Math.random = () => random;
    try {
      const fixture = new KeySetFixture();
      for (const seconds of shares) {
        await fixture.fail();
        assert.ok(Math.abs((fixture.clock.pending[0] ?? NaN) - seconds * 1000) < 1e-6);
      }
    } finally {
      Math.random = chance;
    }
  });
}

test('logs the age of the keys in whole seconds when a fetch fails', async () => {
  const fixture = new KeySetFixture();
  await fixture.response(jwk('a'));
  fixture.clock.advance(3 * HOUR);
  await fixture.fail();
  const [line] = fixture.logged('signing keys could not be fetched');
  assert.equal(line?.heldForSeconds, 3 * 60 * 60);
});
