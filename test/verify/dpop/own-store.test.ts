/* A replay store behind a function of one's own: what it is asked, and what counts as a verdict
   (docs/dpop.md). */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { OwnReplayStore, type IsNewProof, type ReplayVerdict } from '../../../src/verify/dpop/replay.ts';
import { TestClock } from '../../support/clock.ts';
import { NOW } from '../token/issuer.ts';

const THUMBPRINT = '1'.repeat(43);

/** A store over this function, and its verdict on one proof. */
function openStore(isNew: (...asked: Parameters<IsNewProof>) => unknown) {
  const clock = new TestClock(NOW * 1000);
  const lines: Record<string, unknown>[] = [];
  const store = new OwnReplayStore(isNew as IsNewProof, clock, (event, fields) =>
    lines.push({ event, ...fields }),
  );
  const record = (jti = 'a') => store.record(THUMBPRINT, jti, NOW + 330, NOW);
  return { clock, store, record, lines };
}

test('asks for a key of 43 characters, which differs by proof, and to keep it as long as the proof can pass', () => {
  const asked: Parameters<IsNewProof>[] = [];
  const { record } = openStore((...one) => asked.push(one) > 0);
  for (const jti of ['a', 'a', 'b']) record(jti);
  const keys = asked.map(([key]) => key);
  assert.ok(keys.every((key) => /^[\w-]{43}$/.test(key)));
  assert.deepEqual([keys[0] === keys[1], keys[1] === keys[2]], [true, false]);
  assert.ok(asked.every(([, seconds]) => seconds >= 330));
});

test('asks for the same key in every version: during a rollout, replicas of two share a store', () => {
  const asked: string[] = [];
  const { record } = openStore((key) => asked.push(key) > 0);
  for (const jti of ['a', '\ud800']) record(jti);
  const keyOf = (text: string) => createHash('sha256').update(text).digest('base64url');
  assert.deepEqual(asked, [keyOf(`${THUMBPRINT}"a"`), keyOf(`${THUMBPRINT}"\\ud800"`)]);
});

test('asks to keep a proof until it cannot pass, rounded up, for at least a second, and a minute more [RFC 9449 §11.1]', () => {
  const asked: number[] = [];
  const { store } = openStore((_, seconds) => asked.push(seconds) > 0);
  for (const left of [330, 329.1, 0, -0.5, -10]) store.record(THUMBPRINT, 'a', NOW + left, NOW);
  assert.deepEqual(asked, [391, 391, 61, 61, 61]);
});

const fail = () => {
  throw new Error('the store is down');
};

/** What the function does, and the verdict. */
const ANSWERS: readonly (readonly [what: string, isNew: () => unknown, verdict: ReplayVerdict])[] = [
  ['returns true', () => true, 'new'],
  ['returns false', () => false, 'seen'],
  ['resolves with true', async () => true, 'new'],
  ['resolves with false', async () => false, 'seen'],
  ['returns 1', () => 1, 'unavailable'],
  ['returns an object around true', () => Object(true), 'unavailable'],
  ['returns undefined', () => undefined, 'unavailable'],
  ['resolves with "OK"', async () => 'OK', 'unavailable'],
  ['throws', fail, 'unavailable'],
  ['rejects', async () => fail(), 'unavailable'],
  ['returns what resolves with true, but is no Promise', () => ({ then: (done: any) => done(true) }), 'new'],
  [
    'returns what throws when it is awaited',
    () => ({
      get then() {
        return fail();
      },
    }),
    'unavailable',
  ],
];

for (const [what, isNew, verdict] of ANSWERS) {
  test(`takes a proof for ${verdict} when the function ${what}, and says whether it responds [RFC 9449 §11.1]`, async () => {
    const { store, record, clock } = openStore(isNew);
    assert.equal(await record(), verdict);
    assert.deepEqual(store.state(), { isUp: verdict !== 'unavailable' });
    assert.deepEqual(clock.pending, []);
  });
}

test('responds at once when the function does', () => {
  assert.equal(openStore(() => true).record(), 'new');
});

test('takes a proof for unavailable after a second, whatever the function says later', async () => {
  let answer = (_: boolean) => {};
  const { store, record, clock } = openStore(
    () =>
      new Promise<boolean>((resolve) => {
        answer = resolve;
      }),
  );
  const verdict = record();
  assert.deepEqual(clock.pending, [1_000]);
  clock.advance(1_000);
  assert.equal(await verdict, 'unavailable');

  answer(true);
  await new Promise(setImmediate);
  assert.deepEqual(store.state(), { isUp: false });
});

/** Why each failure is no verdict, for the log. */
const LOSSES: readonly (readonly [what: string, isNew: () => unknown, reason: string])[] = [
  ['throws', fail, 'error'],
  ['rejects', async () => fail(), 'error'],
  ['returns 1', () => 1, 'not-a-boolean'],
  ['resolves with nothing', async () => {}, 'not-a-boolean'],
  ['never answers', () => new Promise(() => {}), 'timeout'],
];

for (const [what, isNew, reason] of LOSSES) {
  test(`logs once that the store is lost when the function ${what}, and once that it is ready again (docs/dpop.md)`, async () => {
    let works = false;
    const { record, lines, clock } = openStore(() => (works ? true : isNew()));
    for (const jti of ['a', 'b']) {
      const verdict = record(jti);
      clock.advance(1_000);
      await verdict;
      assert.equal(lines.length, 1);
    }
    works = true;
    record('c');
    record('d');

    const [lost, ready] = lines;
    assert.equal(lines.length, 2);
    assert.deepEqual([lost!.event, lost!.reason], ['replay store lost', reason]);
    assert.deepEqual(
      [lost!.error, 'frames' in lost!],
      reason === 'error' ? ['Error', true] : [undefined, false],
    );
    assert.ok(!JSON.stringify(lost).includes('the store is down'), 'no message: it may hold data');
    assert.deepEqual(ready, { event: 'replay store ready' });
  });
}

test('says that it is ready again for a proof that is not new, too, since only a store that works knows it [§30]', () => {
  const answers = [1, false];
  const { store, record, lines } = openStore(() => answers.shift());
  assert.deepEqual([record('a'), record('b')], ['unavailable', 'seen']);
  assert.deepEqual(
    lines.map(({ event }) => event),
    ['replay store lost', 'replay store ready'],
  );
  assert.deepEqual(store.state(), { isUp: true });
});

test('takes a verdict that is on its way when the second is over, as when the process was busy or stopped', async () => {
  const answers: ((isNew: boolean) => void)[] = [];
  const { record, clock, lines } = openStore(() => new Promise((resolve) => answers.push(resolve)));
  const verdicts = [record('a'), record('b')];
  // The timer is late, and what the system has received is read only after it.
  clock.advance(60_000);
  answers[0]!(true);
  assert.deepEqual(await Promise.all(verdicts), ['new', 'unavailable']);
  assert.deepEqual(
    lines.map(({ event }) => event),
    ['replay store lost'],
  );
});

test('logs nothing while the function responds', () => {
  const { record, lines } = openStore(() => true);
  record();
  assert.deepEqual(lines, []);
});

test('lets 10,000 proofs wait, and refuses the next until one has its verdict', async () => {
  let count = 0;
  const answers: ((isNew: boolean) => void)[] = [];
  const { record } = openStore(() => {
    count += 1;
    return new Promise<boolean>((resolve) => answers.push(resolve));
  });
  const verdicts = Array.from({ length: 10_000 }, () => record());
  assert.deepEqual([record(), count], ['unavailable', 10_000]);

  answers[0]!(true);
  assert.equal(await verdicts[0], 'new');
  void record();
  assert.deepEqual([record(), count], ['unavailable', 10_001]);
});
