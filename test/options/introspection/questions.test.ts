/* Which questions are put to an issuer and when: turns, bounds, failures, and what the log says of them
   (docs/introspection.md). */
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, test, type TestContext } from 'node:test';
import type { Asker } from '../../../src/options/introspection/endpoint.ts';
import { Questions } from '../../../src/options/introspection/questions.ts';
import { FetchError } from '../../../src/verify/keys/jwks.ts';
import { TestClock } from '../../support/clock.ts';
import { NOW } from '../../verify/token/issuer.ts';
import { ACTIVE, openStand, settle, type Stand } from './fixture.ts';

/** Answers to come, by token. */
class Held {
  readonly #answers = new Map<
    string,
    { resolve: (said: object) => void; reject: (error: unknown) => void }
  >();

  readonly say = (token: string) =>
    new Promise<object>((resolve, reject) => {
      this.#answers.set(token, { resolve, reject });
    });

  async answer(token: string, said: object = ACTIVE): Promise<void> {
    this.#answers.get(token)!.resolve(said);
    await settle();
  }

  async fail(token: string, error: unknown = new FetchError('timeout')): Promise<void> {
    this.#answers.get(token)!.reject(error);
    await settle();
  }
}

async function openHeld(): Promise<{ stand: Stand; held: Held }> {
  const held = new Held();
  return { stand: await openStand({ say: held.say }), held };
}

const names = (count: number, from = 0) => Array.from({ length: count }, (_, index) => `t${from + index}`);

const messages = ({ logs }: Stand) => logs.map(({ message }) => message);

/** Presents each token, and waits for none. */
function present(stand: Stand, tokens: readonly string[]): Promise<string>[] {
  return tokens.map((token) => stand.verdict(token));
}

/** The milliseconds that each question of this test may take: others may still end in this process. */
function recordLimits({ mock }: TestContext): readonly number[] {
  const limits: number[] = [];
  const here = new AsyncLocalStorage<boolean>();
  here.enterWith(true);
  mock.method(AbortSignal, 'timeout', (millis: number) => {
    if (here.getStore()) limits.push(millis);
    return new AbortController().signal;
  });
  return limits;
}

const UNAVAILABLE = 'introspection-unavailable';

describe('introspection requests', () => {
  test('are shared by requests with the same token at the same time [§22]', async () => {
    const { stand, held } = await openHeld();
    const verdicts = present(stand, ['a', 'a', 'b', 'a']);
    await settle();
    assert.deepEqual(stand.asked, ['a', 'b']);
    await held.answer('a');
    await held.answer('b', { active: false });
    assert.deepEqual(await Promise.all(verdicts), ['accepted', 'accepted', 'token-inactive', 'accepted']);
  });

  test('that fail are shared, and sent anew for the next request [§22]', async () => {
    const { stand, held } = await openHeld();
    const verdicts = present(stand, ['a', 'a']);
    await held.fail('a');
    assert.deepEqual(await Promise.all(verdicts), [UNAVAILABLE, UNAVAILABLE]);
    const again = stand.verdict('a');
    await held.answer('a');
    assert.equal(await again, 'accepted');
    assert.deepEqual(stand.asked, ['a', 'a']);
  });

  test('are in flight 64 at a time, and the newest that waits takes the place of one that ends, since it has the most time left [§22]', async () => {
    const { stand, held } = await openHeld();
    const verdicts = present(stand, names(67));
    await settle();
    assert.deepEqual(stand.asked, names(64));
    await held.answer('t3');
    await held.fail('t9');
    assert.deepEqual(stand.asked.slice(64), ['t66', 't65']);
    const late = stand.verdict('late');
    await held.answer('t66');
    await held.answer('late');
    assert.deepEqual(stand.asked.slice(66), ['late', 't64']);
    await held.answer('t64');
    assert.deepEqual(await Promise.all([verdicts[3], verdicts[9], verdicts[64], verdicts[66], late]), [
      'accepted',
      UNAVAILABLE,
      'accepted',
      'accepted',
      'accepted',
    ]);
    // Every turn was given back.
    for (const token of [...names(3), ...names(5, 4), ...names(54, 10), 't65']) await held.answer(token);
    present(stand, names(65, 100));
    await settle();
    assert.equal(stand.asked.length, 68 + 64);
  });

  test('keep at most 1,000 requests waiting, of which those that ask are none [§22]', async () => {
    const { stand, held } = await openHeld();
    const asking = present(stand, names(64));
    const sharing = present(
      stand,
      Array.from({ length: 500 }, () => 't0'),
    );
    const queued = present(stand, names(500, 64));
    await settle();
    for (const token of ['t0', 't1', 'another', 't563']) {
      const refusal = (await stand.refused(token)).refusal;
      assert.deepEqual([refusal.kind, refusal.reason], ['temporarily_unavailable', 'too-many-waiting']);
      assert.equal(refusal.description, 'Too many requests are waiting');
    }
    assert.equal(stand.counts.filter((one) => one === 'introspection shed idp').length, 4);
    await held.answer('t0');
    assert.deepEqual(new Set(await Promise.all([asking[0], ...sharing])), new Set(['accepted']));
    // 499 wait: one has its turn.
    const more = present(stand, names(501, 1_000));
    await settle();
    assert.equal(await stand.verdict('one-too-many'), 'too-many-waiting');
    for (let index = 1; index < 1_065; index += 1) await held.answer(stand.asked[index]!);
    assert.deepEqual(new Set(await Promise.all([...queued, ...more])), new Set(['accepted']));
  });

  test('that fail let all that waited for them make room for others [§22]', async () => {
    const { stand, held } = await openHeld();

    const alike = (token: string) =>
      present(
        stand,
        Array.from({ length: 1_001 }, () => token),
      );

    const failing = alike('a');
    await settle();
    assert.equal(await stand.verdict('a'), 'too-many-waiting');
    await held.fail('a');
    assert.deepEqual(new Set(await Promise.all(failing)), new Set([UNAVAILABLE]));
    const later = alike('b');
    await held.answer('b');
    assert.deepEqual(new Set(await Promise.all(later)), new Set(['accepted']));
  });

  test('of requests that are refused because 1,000 wait take no turn from later ones, not of the same tokens either [§22]', async () => {
    const { stand, held } = await openHeld();
    present(stand, names(64));
    present(
      stand,
      names(1_000).map(() => 't0'),
    );
    await settle();
    for (const token of names(64, 100)) assert.equal(await stand.verdict(token), 'too-many-waiting');

    for (const token of names(64)) await held.answer(token);
    present(stand, names(64, 100));
    await settle();
    assert.deepEqual(stand.asked.slice(64), names(64, 100));
  });

  test('wait for their turn for four and a half seconds, and are then 503 without having been sent: they would only fail [§22]', async () => {
    const { stand, held } = await openHeld();
    present(stand, names(64));
    const waiting = stand.verdict('waiting');
    await settle();
    stand.clock.advance(4_499);
    await settle();
    stand.clock.advance(1);
    assert.equal(await waiting, UNAVAILABLE);
    assert.equal(stand.asked.length, 64);
    assert.deepEqual(stand.counts, ['introspection shed idp']);
    assert.deepEqual(messages(stand).slice(1), []);
    // Its turn goes to nobody, and another takes it.
    await held.answer('t0');
    assert.equal(stand.asked.length, 64);
    present(stand, ['later']);
    await settle();
    assert.equal(stand.asked.at(-1), 'later');
  });

  test('take five seconds in all, and what is left of them after waiting for their turn [§22]', async (t) => {
    const limits = recordLimits(t);
    const { stand, held } = await openHeld();
    present(stand, names(65));
    await settle();
    assert.deepEqual(
      limits,
      names(64).map(() => 5_000),
    );
    stand.clock.advance(3_200.5);
    await held.answer('t0');
    assert.deepEqual(limits.slice(64), [1_800]);
  });

  test('whose turn comes when the five seconds are over take one millisecond [§22]', async (t) => {
    const limits = recordLimits(t);
    const { stand, held } = await openHeld();
    const { clock } = stand;
    const { after } = clock;
    // Between the turn and the question.
    clock.after = (...given) => {
      const cancel = after(...given);
      return () => {
        cancel();
        clock.advance(5_001);
      };
    };
    present(stand, names(65));
    await settle();
    await held.answer('t0');
    assert.deepEqual(limits.slice(64), [1]);
  });

  test('of --check take five seconds [§22]', async (t) => {
    const limits = recordLimits(t);
    const stand = await openStand();
    await stand.introspect.probe();
    assert.deepEqual(limits, [5_000]);
  });

  test('of --check name the endpoint, whatever it says [§22]', async () => {
    const endpoint = 'https://idp.test/introspect';
    const clock = new TestClock(NOW * 1000);
    for (const [said, expected] of [
      [{ active: false }, { endpoint }],
      [{ active: true }, { endpoint, problem: { reason: 'active', code: '' } }],
      [{}, { endpoint, problem: { reason: 'no-verdict', code: '' } }],
    ] as const) {
      const asker: Asker = { ask: async () => said, forget() {}, address: () => endpoint };
      const questions = new Questions('idp', asker, { clock, log: () => {}, count: undefined });
      assert.deepEqual(await questions.probe('random'), expected);
    }
  });
});

describe('after failures', () => {
  async function openAfter(failures: number): Promise<Stand> {
    const stand = await openStand({ say: () => Promise.reject(new FetchError('timeout')) });
    for (const token of names(failures)) assert.equal(await stand.verdict(token), UNAVAILABLE);
    return stand;
  }

  test('fewer than five in a row, every introspection request is sent [§22]', async () => {
    const stand = await openAfter(4);
    stand.say = () => ACTIVE;
    assert.equal(await stand.verdict('x'), 'accepted');
    stand.say = () => Promise.reject(new FetchError('timeout'));
    for (const token of names(5, 10)) await stand.verdict(token);
    assert.equal(stand.asked.length, 10);
  });

  test('five in a row, one introspection request a second is sent, and the others are 503 at once [§22]', async () => {
    const stand = await openAfter(5);
    for (const token of names(20, 10)) assert.equal(await stand.verdict(token), UNAVAILABLE);
    assert.equal(stand.asked.length, 5);
    stand.clock.advance(999);
    assert.equal(await stand.verdict('x'), UNAVAILABLE);
    assert.equal(stand.asked.length, 5);
    stand.clock.advance(1);
    await stand.verdict('x');
    await stand.verdict('y');
    assert.equal(stand.asked.length, 6);
    assert.equal(stand.counts.filter((one) => one === 'introspection failed idp').length, 6);
    assert.equal(stand.counts.filter((one) => one === 'introspection shed idp').length, 22);
  });

  test('five in a row, the others are 503 at once, also while no turn is free [§22]', async () => {
    const { stand, held } = await openHeld();
    present(stand, names(64));
    await settle();
    for (const token of names(5)) await held.fail(token);
    for (const token of names(5, 100)) {
      stand.clock.advance(1_000);
      present(stand, [token]);
      await settle();
    }
    assert.equal(stand.asked.length, 69);

    const verdicts: string[] = [];
    void stand.verdict('x').then((verdict) => verdicts.push(verdict));
    await settle();
    assert.deepEqual(verdicts, [UNAVAILABLE]);
  });

  test('the first success ends that, within a second of the end of the fault [§22]', async () => {
    const stand = await openAfter(5);
    stand.say = () => ACTIVE;
    assert.equal(await stand.verdict('x'), UNAVAILABLE);
    stand.clock.advance(1_000);
    assert.equal(await stand.verdict('x'), 'accepted');
    assert.equal(await stand.verdict('y'), 'accepted');
    assert.deepEqual(messages(stand).slice(1), ['introspection lost', 'introspection ready']);
  });

  test('the first success ends that, although a later introspection request had one before the failures [§22]', async () => {
    const { stand, held } = await openHeld();
    present(stand, ['slow', 'quick', ...names(5)]);
    await settle();
    await held.answer('quick');
    for (const token of names(5)) await held.fail(token);
    assert.equal(await stand.verdict('x'), UNAVAILABLE);
    await held.answer('slow');
    present(stand, ['y']);
    await settle();
    assert.equal(stand.asked.at(-1), 'y');
  });

  test('an introspection request that gets a 400 leaves that second to the next one, so that no unauthenticated client uses it up [§22]', async () => {
    const stand = await openAfter(5);
    stand.clock.advance(1_000);
    stand.say = () => Promise.reject(new FetchError('status-refused', 400));
    assert.equal(await stand.verdict('stranger'), UNAVAILABLE);
    stand.say = () => ACTIVE;
    assert.equal(await stand.verdict('good'), 'accepted');
    assert.equal(stand.asked.length, 7);
  });

  test('a response that is kept still counts, and needs no introspection request [§22]', async () => {
    const stand = await openStand();
    await stand.verdict('kept');
    stand.say = () => Promise.reject(new FetchError('timeout'));
    for (const token of names(6)) await stand.verdict(token);
    assert.equal(await stand.verdict('kept'), 'accepted');
  });

  test('those that wait for their turn are 503 at once [§22]', async () => {
    const { stand, held } = await openHeld();
    const verdicts = present(stand, names(80));
    await settle();
    for (const token of names(5)) await held.fail(token);
    // Four turns were given before the fifth failure.
    assert.equal(stand.asked.length, 68);
    assert.deepEqual(new Set(await Promise.all(verdicts.slice(64, 76))), new Set([UNAVAILABLE]));
  });

  test('an old introspection request that fails after a newer one got a response changes nothing [§22]', async () => {
    const { stand, held } = await openHeld();
    const old = present(stand, names(10));
    await settle();
    present(stand, ['new']);
    await held.answer('new');
    // Nor does an older response make them newer.
    await held.answer('t0');
    for (const token of names(9, 1)) await held.fail(token);
    assert.deepEqual(new Set(await Promise.all(old.slice(1))), new Set([UNAVAILABLE]));
    assert.deepEqual(messages(stand).slice(1), []);
    stand.say = () => ACTIVE;
    assert.equal(await stand.verdict('x'), 'accepted');
  });

  test('400s by the hundred, for tokens that unauthenticated clients choose, every introspection request is sent, and the log says nothing [§22, J16]', async () => {
    const stand = await openStand({ say: () => Promise.reject(new FetchError('status-refused', 400)) });
    for (const token of names(100)) {
      const { refusal } = await stand.refused(token);
      assert.deepEqual([refusal.reason, refusal.headers], [UNAVAILABLE, ['Retry-After', '1']]);
    }
    assert.equal(stand.asked.length, 100);
    assert.deepEqual(messages(stand).slice(1), []);
    stand.say = () => ACTIVE;
    assert.equal(await stand.verdict('x'), 'accepted');
    assert.deepEqual(messages(stand).slice(1), []);
  });

  test('a 400 is no response that an older introspection request could come too late for [§22, J16]', async () => {
    const { stand, held } = await openHeld();
    const old = stand.verdict('old');
    const strange = stand.verdict('strange');
    await settle();
    await held.fail('strange', new FetchError('status-refused', 400));
    await held.fail('old');
    assert.deepEqual([await strange, await old], [UNAVAILABLE, UNAVAILABLE]);
    assert.deepEqual(messages(stand).slice(1), ['introspection lost']);
  });

  test('a 400 is no success either [§22]', async () => {
    const stand = await openAfter(4);
    stand.say = () => Promise.reject(new FetchError('status-refused', 400));
    await stand.verdict('strange');
    stand.say = () => Promise.reject(new FetchError('timeout'));
    await stand.verdict('x');
    assert.equal(await stand.verdict('y'), UNAVAILABLE);
    assert.equal(stand.asked.length, 6);
    assert.deepEqual(messages(stand).slice(1), ['introspection lost']);
  });
});

describe('the log', () => {
  for (const [what, thrown, fields] of [
    ['a timeout', new FetchError('timeout'), { reason: 'timeout', code: '' }],
    ['401', new FetchError('status-refused', 401), { reason: 'client-refused', code: '401' }],
    ['403', new FetchError('status-refused', 403), { reason: 'client-refused', code: '403' }],
    ['404', new FetchError('status-refused', 404), { reason: 'status-refused', code: '404' }],
    ['407', new FetchError('status-refused', 407), { reason: 'status-refused', code: '407' }],
    ['500', new FetchError('status-refused', 500), { reason: 'status-refused', code: '500' }],
    ['a redirect', new FetchError('status-refused', 302), { reason: 'status-refused', code: '302' }],
    ['no JSON', new FetchError('not-a-json-object'), { reason: 'not-a-json-object', code: '' }],
  ] as const) {
    test(`says once that the issuer does not say, after ${what}, and once that it does again [§22, J4]`, async () => {
      const stand = await openStand({ say: () => Promise.reject(thrown) });
      for (const token of names(3)) {
        const { refusal, found } = await stand.refused(token);
        assert.deepEqual([refusal.kind, found], ['temporarily_unavailable', { issuerName: 'idp' }]);
      }
      stand.say = () => ({ active: false });
      await stand.verdict('x');
      await stand.verdict('y');
      const [, lost, ready, ...more] = stand.logs;
      const { time: _, ...line } = lost!;
      assert.deepEqual(line, { level: 'warn', message: 'introspection lost', issuer: 'idp', ...fields });
      assert.deepEqual([ready?.level, ready?.message, ready?.issuer], ['info', 'introspection ready', 'idp']);
      assert.deepEqual(more, []);
    });
  }

  test('describes an unforeseen error by its name and frames, and shows nothing of the token [§22]', async () => {
    const stand = await openStand({ say: (token) => Promise.reject(new RangeError(token)) });
    assert.equal(await stand.verdict('secret-token'), UNAVAILABLE);
    const line = stand.logs.at(-1)!;
    assert.deepEqual(
      [line.message, line.reason, line.code, line.error],
      ['introspection lost', 'unforeseen', '', 'RangeError'],
    );
    assert.doesNotMatch(JSON.stringify(stand.logs), /secret/);
  });

  test('warns that the issuer itself is not asked, once for each that has the part [§22]', async () => {
    const stand = await openStand();
    assert.deepEqual(
      stand.logs.map(({ level, message, issuer }) => [level, message, issuer]),
      [['warn', 'introspection not from the provider', 'idp']],
    );
  });
});
