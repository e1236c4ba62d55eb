/* How many fetches run at a time, in which order, and what becomes of those that hang. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Pace, Slots } from '../../../src/options/tenants/slots.ts';
import { FetchError } from '../../../src/verify/keys/jwks.ts';
import { TestClock } from '../../support/clock.ts';

/** Fetches by name that end when the test says so. */
class Fetches {
  readonly clock = new TestClock();
  readonly slots = new Slots(this.clock);
  readonly begun: string[] = [];
  readonly #ends = new Map<string, () => void>();
  readonly #deadlines = new Map<string, AbortController>();

  start(name: string, isAgain = false): Promise<string> {
    const deadline = new AbortController();
    this.#deadlines.set(name, deadline);

    const fetch = () => {
      this.begun.push(name);
      return new Promise<string>((resolve) => this.#ends.set(name, () => resolve(name)));
    };

    const fetched = this.slots.run(isAgain, deadline.signal, fetch);
    fetched.catch(() => {});
    return fetched;
  }

  startAll(prefix: string, count: number, isAgain = false) {
    return Array.from({ length: count }, (_, index) => this.start(`${prefix}${index}`, isAgain));
  }

  async end(name: string) {
    this.#ends.get(name)?.();
    await turn();
  }

  async abort(name: string) {
    this.#deadlines.get(name)?.abort();
    await turn();
  }

  count(prefix: string) {
    return this.begun.filter((name) => name.startsWith(prefix)).length;
  }
}

test('runs 20 at a time, and of the others the newest first, which has the most time left [§23]', async () => {
  const fetches = new Fetches();
  const all = fetches.startAll('a', 23);
  await turn();
  assert.equal(fetches.begun.length, 20);
  await fetches.end('a3');
  assert.deepEqual(fetches.begun.slice(20), ['a22']);
  await fetches.end('a4');
  await fetches.end('a5');
  assert.deepEqual(fetches.begun.slice(20), ['a22', 'a21', 'a20']);
  assert.equal(await all[3], 'a3');
});

test('begins none that has waited for 4.5 of its 5 seconds: it would fail, and count as failed, for want of time [§23, J17]', async () => {
  const fetches = new Fetches();
  fetches.startAll('hung', 20);
  fetches.start('early');
  fetches.clock.advance(1);
  fetches.start('late');
  await turn();
  fetches.clock.advance(4_499);
  await fetches.abort('hung0');
  assert.deepEqual(fetches.begun.slice(20), ['late']);
  await fetches.abort('hung1');
  assert.deepEqual(fetches.begun.slice(20), ['late']);
  fetches.start('new');
  await turn();
  assert.deepEqual(fetches.begun.slice(20), ['late', 'new']);
});

test('runs 5 at a time of those whose last one failed, past which the others go [§23, J17]', async () => {
  const fetches = new Fetches();
  fetches.startAll('again', 30, true);
  fetches.startAll('first', 16);
  // The newest, which goes before none of those.
  fetches.start('again-last', true);
  await turn();
  assert.deepEqual([fetches.count('again'), fetches.count('first')], [5, 15]);
  await fetches.end('first0');
  assert.deepEqual([fetches.count('again'), fetches.count('first')], [5, 16]);
  await fetches.end('again0');
  assert.deepEqual(fetches.begun.at(-1), 'again-last');
});

test('gives the slot back at the deadline of a fetch that ignores it [§23, J17]', async () => {
  const fetches = new Fetches();
  const all = fetches.startAll('a', 21);
  await turn();
  await fetches.abort('a0');
  await assert.rejects(all[0]!, (error) => FetchError.is(error) && error.reason === 'timeout');
  assert.equal(fetches.begun.at(-1), 'a20');
});

test('never begins one whose deadline came while it waited [§23]', async () => {
  const fetches = new Fetches();
  const all = fetches.startAll('a', 22);
  await turn();
  await fetches.abort('a20');
  await assert.rejects(all[20]!, (error) => FetchError.is(error) && error.reason === 'timeout');
  await fetches.end('a1');
  assert.deepEqual(fetches.begun.slice(20), ['a21']);
});

test('gives the slot back when a fetch fails or throws', async () => {
  const slots = new Slots(new TestClock());
  const { signal } = new AbortController();
  const reject = () => Promise.reject(new FetchError('too-large'));

  const fail = () => {
    throw new RangeError('x');
  };

  for (let count = 0; count < 25; count += 1) {
    await assert.rejects(slots.run(false, signal, reject), FetchError.is);
    await assert.rejects(slots.run(true, signal, fail), RangeError);
  }
  assert.equal(await slots.run(true, signal, async () => 'x'), 'x');
});

test('lets ten happen in any second, and no more [§23, J17]', () => {
  const clock = new TestClock();
  const pace = new Pace(clock);
  const tries = (count: number) => Array.from({ length: count }, () => pace.mayGoOn()).filter(Boolean).length;

  assert.equal(tries(4), 4);
  clock.advance(600);
  assert.equal(tries(9), 6);
  clock.advance(399);
  assert.equal(tries(5), 0);
  clock.advance(1);
  assert.equal(tries(5), 4);
  clock.advance(600);
  assert.equal(tries(9), 6);
});
