import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LruCache } from '../../src/base/lru.ts';

function memoryOf(capacity: number, ...keys: string[]): LruCache<string> {
  const memory = new LruCache<string>(capacity);
  for (const key of keys) memory.set(key, `value of ${key}`);
  return memory;
}

/** Which of the keys are still remembered; asking counts as use. */
const held = (memory: LruCache<string>, ...keys: string[]) =>
  keys.filter((key) => memory.get(key) === `value of ${key}`).join('');

test('gives each value by its own key', () => {
  assert.equal(held(memoryOf(3, 'a', 'b', 'c'), 'a', 'b', 'c'), 'abc');
});

test('gives nothing for a key that was never set and loses nothing over it', () => {
  const memory = memoryOf(1, 'a');
  assert.equal(memory.get('b'), undefined);
  assert.equal(held(memory, 'a'), 'a');
});

test('forgets what is deleted, and nothing else', () => {
  const memory = memoryOf(3, 'a', 'b', 'c');
  for (const [gone, left] of [
    ['b', 'ac'],
    ['c', 'a'],
    ['c', 'a'],
    ['a', ''],
  ] as const) {
    memory.delete(gone);
    assert.equal(memory.size, left.length);
    assert.equal(held(memory, 'a', 'b', 'c'), left);
  }
  memory.set('d', 'value of d');
  assert.equal(held(memory, 'd'), 'd');
});

for (const capacity of [0, 1, 2, 5]) {
  test(`holds the ${capacity} entries set last and no more when its capacity is ${capacity}`, () => {
    const keys = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
    const memory = new LruCache<string>(capacity);
    for (const [index, key] of keys.entries()) {
      memory.set(key, `value of ${key}`);
      assert.equal(memory.size, Math.min(index + 1, capacity));
    }
    assert.equal(held(memory, ...keys), keys.slice(keys.length - capacity).join(''));
  });
}

for (const [used, left] of [
  ['', 'bcd'],
  ['a', 'acd'],
  ['b', 'bcd'],
  ['c', 'bcd'],
  ['ab', 'abd'],
  ['aab', 'abd'],
  ['ba', 'abd'],
  ['abc', 'bcd'],
  ['cba', 'abd'],
] as const) {
  test(`forgets the entry that was used longest ago after ${used === '' ? 'no use' : `the uses ${used}`}`, () => {
    const memory = memoryOf(3, 'a', 'b', 'c');
    for (const key of used) assert.equal(memory.get(key), `value of ${key}`);
    memory.set('d', 'value of d');
    assert.equal(held(memory, 'a', 'b', 'c', 'd'), left);
  });
}

test('forgets in the order of use whatever the history', () => {
  const capacity = 5;
  const memory = new LruCache<string>(capacity);
  let model: string[] = [];
  let state = 1;
  for (let step = 0; step < 20_000; step += 1) {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    const key = String((state >> 8) % 9);
    const action = (state >> 16) % 5;
    const isHeld = model.includes(key);
    if (action < 2) assert.equal(memory.get(key), isHeld ? `value of ${key}` : undefined);
    else if (action === 2) memory.delete(key);
    else memory.set(key, `value of ${key}`);
    if (action > 1 || isHeld) model = model.filter((other) => other !== key);
    if (action > 2 || (action < 2 && isHeld)) model = [...model, key].slice(-capacity);
    assert.equal(memory.size, model.length);
  }
});

test('replaces a value under its key in a full memory, forgets no other, and counts it as used', () => {
  const memory = memoryOf(2, 'a', 'b');
  memory.set('a', 'new');
  assert.equal(memory.size, 2);
  memory.set('c', 'value of c');
  assert.equal(memory.get('a'), 'new');
  assert.equal(held(memory, 'b', 'c'), 'c');
});
