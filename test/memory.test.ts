import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Memory } from '../src/memory.ts';

function memoryOf(capacity: number, ...keys: string[]): Memory<string> {
  const memory = new Memory<string>(capacity);
  for (const key of keys) memory.set(key, `value of ${key}`);
  return memory;
}

/** Which of the keys are still remembered; asking takes them out. */
const held = (memory: Memory<string>, ...keys: string[]) => keys.filter((key) => memory.take(key) === `value of ${key}`).join('');

test('gives each value by its own key', () => {
  assert.equal(held(memoryOf(3, 'a', 'b', 'c'), 'a', 'b', 'c'), 'abc');
});

test('gives nothing for a key that was never set and loses nothing over it', () => {
  const memory = memoryOf(1, 'a');
  assert.equal(memory.take('b'), undefined);
  assert.equal(held(memory, 'a'), 'a');
});

test('forgets what is taken', () => {
  const memory = memoryOf(2, 'a', 'b');
  assert.equal(held(memory, 'a'), 'a');
  assert.equal(memory.size, 1);
  assert.equal(held(memory, 'a', 'b'), 'b');
  assert.equal(memory.size, 0);
});

for (const capacity of [0, 1, 2, 5]) {
  test(`holds the ${capacity} entries set last and no more when its capacity is ${capacity}`, () => {
    const keys = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
    const memory = new Memory<string>(capacity);
    for (const [index, key] of keys.entries()) {
      memory.set(key, `value of ${key}`);
      assert.equal(memory.size, Math.min(index + 1, capacity));
    }
    assert.equal(held(memory, ...keys), keys.slice(keys.length - capacity).join(''));
  });
}

test('forgets the least recently used entry when one that was used is set again', () => {
  const memory = memoryOf(2, 'a', 'b');
  memory.set('a', memory.take('a') ?? 'lost');
  memory.set('c', 'value of c');
  assert.equal(held(memory, 'a', 'b', 'c'), 'ac');
});

test('replaces a value under its key in a full memory, forgets no other, and counts it as used', () => {
  const memory = memoryOf(2, 'a', 'b');
  memory.set('a', 'new');
  assert.equal(memory.size, 2);
  memory.set('c', 'value of c');
  assert.equal(memory.take('a'), 'new');
  assert.equal(held(memory, 'b', 'c'), 'c');
});
