import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Cache } from '../../../src/verify/base/cache.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Keys must end in characters of a digest. */
const keyOf = (name: string) => createHash('sha256').update(name).digest('base64url');

/** Offers it as often as it must be offered to be stored. */
function remember(memory: Cache<string>, ...names: string[]): void {
  for (const name of [...names].flatMap((each) => [each, each])) {
    memory.offer(keyOf(name), () => `value of ${name}`);
  }
}

function memoryOf(capacity: number, ...names: string[]): Cache<string> {
  const memory = new Cache<string>(capacity);
  remember(memory, ...names);
  return memory;
}

/** The names that are still cached. */
const held = (memory: Cache<string>, ...names: string[]) =>
  names.filter((name) => memory.get(keyOf(name)) === `value of ${name}`).join('');

test('returns each value for its own key', () => {
  assert.equal(held(memoryOf(6, 'a', 'b', 'c'), 'a', 'b', 'c'), 'abc');
});

test('returns the value that was offered last, even while an older generation has another', () => {
  const memory = memoryOf(4, 'a', 'b', 'c');
  memory.offer(keyOf('a'), () => 'another value of a');
  assert.equal(memory.get(keyOf('a')), 'another value of a');
  assert.equal(held(memory, 'b', 'c'), 'bc');
});

test('returns undefined for a key that was never offered, and keeps its entries', () => {
  const memory = memoryOf(1, 'a');
  assert.equal(memory.get(keyOf('b')), undefined);
  assert.equal(held(memory, 'a'), 'a');
});

test('stores nothing that is offered only once, however much is offered', () => {
  const memory = new Cache<string>(1_000_000);
  const names = Array.from({ length: 1_000 }, (_, index) => `once ${index}`);
  for (const name of names) memory.offer(keyOf(name), () => `value of ${name}`);
  assert.equal(held(memory, ...names), '');
});

test('stores a value on its second offer even after 99 others, in a cache for 200', () => {
  const memory = new Cache<string>(200);
  const names = Array.from({ length: 100 }, (_, index) => `name ${index}`);
  for (const name of [...names, ...names]) memory.offer(keyOf(name), () => `value of ${name}`);
  assert.equal(held(memory, ...names), names.join(''));
});

/** Ends in 8 characters that stand for these 32 bits. */
function keyMarked(mark: number): string {
  const bytes = Buffer.alloc(6);
  bytes.writeInt32LE(mark);
  return bytes.toString('base64url');
}

for (const [capacity, marks] of [
  [10, 65_536],
  [10_000, 65_536],
  [50_000, 262_144],
] as const) {
  test(`stores two keys that are offered alternately and share a slot of the ${marks} marks for ${capacity} values`, (t) => {
    t.mock.method(Math, 'random', () => 0.5);
    const memory = new Cache<string>(capacity);
    const keys = [marks, 2 * marks].map(keyMarked);
    for (const key of [...keys, ...keys]) memory.offer(key, () => key);
    assert.deepEqual(
      keys.map((key) => memory.get(key)),
      keys,
    );
  });

  test(`stores three keys in the end that are offered alternately and share a slot of ${marks} marks`, (t) => {
    const random = t.mock.method(Math, 'random', () => 0.5);
    const memory = new Cache<string>(capacity);
    const keys = [marks, 2 * marks, 3 * marks].map(keyMarked);
    const isStored = (key: string) => memory.get(key) !== undefined;

    const offerAll = () => {
      for (const key of keys) {
        if (!isStored(key)) memory.offer(key, () => key);
      }
      return keys.filter(isStored).length;
    };

    assert.deepEqual([offerAll(), offerAll(), offerAll()], [0, 0, 0]);
    random.mock.mockImplementationOnce(() => 0.03);
    assert.deepEqual([offerAll(), offerAll()], [1, 3]);
  });
}

test('stores 98 % of 50,000 keys that are offered one after another, in a cache for 100,000', () => {
  const memory = new Cache<string>(100_000);
  const keys = Array.from({ length: 50_000 }, (_, index) => keyOf(`key ${index}`));
  for (const key of [...keys, ...keys]) memory.offer(key, () => key);
  const stored = keys.filter((key) => memory.get(key) === key).length;
  assert.ok(stored > 49_000, `${stored} stored`);
});

test('tells keys apart by their ends: those of proofs begin with an algorithm', () => {
  const memory = new Cache<string>(100);
  const longKeyOf = (_: unknown, index: number) => `ES256-----${keyOf(String(index))}`;
  const keys = Array.from({ length: 50 }, longKeyOf);
  for (const key of keys) memory.offer(key, () => key);
  assert.deepEqual(
    keys.filter((key) => memory.get(key)),
    [],
  );
});

test('keeps the value that was offered last', () => {
  const memory = memoryOf(4, 'a');
  memory.offer(keyOf('a'), () => 'new');
  assert.equal(memory.get(keyOf('a')), 'new');
});

for (const capacity of [2, 4, 20]) {
  test(`keeps the latest half of ${capacity} entries, and never more than ${capacity}`, () => {
    const memory = new Cache<string>(capacity);
    for (let last = 0; last < 10 * capacity; last += 1) {
      remember(memory, `name ${last}`);
      for (let ago = 0; ago < 3 * capacity && ago <= last; ago += 1) {
        const isHeld = memory.get(keyOf(`name ${last - ago}`)) !== undefined;
        if (ago < capacity / 2) assert.ok(isHeld, `${ago} of ${last} were remembered since`);
        if (ago >= capacity) assert.ok(!isHeld, `${ago} of ${last} should make it forgotten`);
      }
    }
  });
}

test('marks no key when its capacity is 0', (t) => {
  const random = t.mock.method(Math, 'random', () => 0.5);
  const memory = memoryOf(0, 'a', 'b', 'a');
  assert.equal(held(memory, 'a', 'b'), '');
  assert.equal(random.mock.callCount(), 0);
});

for (const capacity of [1, 2]) {
  test(`keeps the last two entries when its capacity is ${capacity}`, () => {
    const memory = memoryOf(capacity, 'a', 'b', 'c');
    assert.equal(memory.get(keyOf('a')), undefined);
    assert.equal(held(memory, 'c', 'b'), 'cb');
  });
}

test('keeps nothing of a text of which a key is a slice', () => {
  const memory = new Cache<string>(100);
  const names = Array.from({ length: 40 }, (_, index) => `name ${index}`);
  collect();
  const before = process.memoryUsage().heapUsed;
  for (const name of [...names, ...names]) {
    const text = Buffer.alloc(1024 * 1024, 'x').toString('latin1') + keyOf(name);
    memory.offer(text.slice(-43), () => `value of ${name}`);
  }
  collect();
  const kept = process.memoryUsage().heapUsed - before;
  assert.ok(kept < 10 * 1024 * 1024, `${kept} bytes`);
  assert.equal(held(memory, ...names), names.join(''));
});
