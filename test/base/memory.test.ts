import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { LruCache } from '../../src/base/lru.ts';

/** Keys must end in characters of a digest. */
const keyOf = (name: string) => createHash('sha256').update(name).digest('base64url');

/** Sets it as often as it takes to be remembered. */
function remember(memory: LruCache<string>, ...names: string[]): void {
  for (const name of [...names].flatMap((each) => [each, each])) memory.set(keyOf(name), `value of ${name}`);
}

function memoryOf(capacity: number, ...names: string[]): LruCache<string> {
  const memory = new LruCache<string>(capacity);
  remember(memory, ...names);
  return memory;
}

/** Which of the names are still remembered; asking counts as use. */
const held = (memory: LruCache<string>, ...names: string[]) =>
  names.filter((name) => memory.get(keyOf(name)) === `value of ${name}`).join('');

test('gives each value by its own key', () => {
  assert.equal(held(memoryOf(6, 'a', 'b', 'c'), 'a', 'b', 'c'), 'abc');
});

test('gives nothing for a key that was never set and loses nothing over it', () => {
  const memory = memoryOf(1, 'a');
  assert.equal(memory.get(keyOf('b')), undefined);
  assert.equal(held(memory, 'a'), 'a');
});

test('remembers nothing that is set once, however much of it', () => {
  const memory = new LruCache<string>(1_000_000);
  const names = Array.from({ length: 1_000 }, (_, index) => `once ${index}`);
  for (const name of names) memory.set(keyOf(name), `value of ${name}`);
  assert.equal(held(memory, ...names), '');
});

test('remembers what is set again, though as much as it surely has room for was set in between', () => {
  const memory = new LruCache<string>(200);
  const names = Array.from({ length: 100 }, (_, index) => `name ${index}`);
  for (const name of [...names, ...names]) memory.set(keyOf(name), `value of ${name}`);
  assert.equal(held(memory, ...names), names.join(''));
});

test('takes the value that was set last', () => {
  const memory = memoryOf(4, 'a');
  memory.set(keyOf('a'), 'new');
  assert.equal(memory.get(keyOf('a')), 'new');
});

test('forgets what is deleted, of either generation, and nothing else', () => {
  for (const gone of ['a', 'b', 'c', 'd']) {
    const memory = memoryOf(4, 'a', 'b', 'c', 'd');
    memory.delete(keyOf(gone));
    const left = ['a', 'b', 'c', 'd'].filter((name) => name !== gone);
    assert.equal(memory.get(keyOf(gone)), undefined);
    assert.equal(held(memory, ...left.reverse()), left.join(''));
  }
});

test('makes no room for what it remembers already', () => {
  const memory = memoryOf(4, 'a', 'b', 'c', 'd');
  for (let time = 0; time < 10; time += 1) memory.set(keyOf('c'), 'value of c');
  assert.equal(held(memory, 'a'), 'a');
});

for (const capacity of [2, 4, 10]) {
  test(`holds the half of ${capacity} entries that was used last, and never more than ${capacity}, whatever the history`, () => {
    const memory = new LruCache<string>(capacity);
    const names = Array.from({ length: 3 * capacity }, (_, index) => `name ${index}`);
    let state = 1;
    // The names in the order of their last use, the latest first.
    let used: string[] = [];
    for (let step = 0; step < 20_000; step += 1) {
      state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
      const name = names[(state >> 8) % names.length]!;
      const isHeld = memory.get(keyOf(name)) !== undefined;
      const place = used.indexOf(name);
      if (place >= 0 && place < capacity / 2) assert.ok(isHeld, `${name} was used ${place} names ago`);
      if (place < 0 || place >= capacity) assert.ok(!isHeld, `${name} should be forgotten`);
      if (!isHeld) remember(memory, name);
      used = [name, ...used.filter((other) => other !== name)];
    }
  });
}

for (const capacity of [1, 2]) {
  test(`remembers one entry and its predecessor when its capacity is ${capacity}`, () => {
    const memory = memoryOf(capacity, 'a', 'b', 'c');
    assert.equal(memory.get(keyOf('a')), undefined);
    assert.equal(held(memory, 'c', 'b'), 'cb');
  });
}
