/* Chunks become one buffer: all of them, in order, and nothing else. */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { ByteBuffer } from '../../../src/verify/base/byte-buffer.ts';
import { processorMillis } from '../../support/processor-time.ts';

for (const lengths of [[], [0], [1], [1, 1, 1, 1, 1], [5, 0, 3], [1000, 1, 5000], [3, 100_000, 3]]) {
  test(`returns pieces of the lengths [${lengths}] as one, in order`, () => {
    const pieces = lengths.map((length, index) => Buffer.alloc(length, 97 + index));
    const gathering = new ByteBuffer();
    let sum = 0;
    for (const piece of pieces) {
      sum += piece.length;
      assert.equal(gathering.add(piece), sum);
    }
    assert.deepEqual(gathering.release(), Buffer.concat(pieces));
  });
}

test('starts empty after a release, and leaves the released bytes alone', () => {
  const gathering = new ByteBuffer();
  gathering.add(Buffer.from('abc'));
  const first = gathering.release();
  assert.equal(gathering.add(Buffer.from('xy')), 2);
  assert.deepEqual(
    [String(first), String(gathering.release()), String(gathering.release())],
    ['abc', 'xy', ''],
  );
});

test('takes time in proportion to the bytes, however small the pieces', () => {
  const COUNT = 400_000;
  const piece = Buffer.of(1);
  const gathering = new ByteBuffer();
  const millis = processorMillis(() => {
    for (let count = 0; count < COUNT; count += 1) gathering.add(piece);
  });
  // Copying everything for each piece would take over ten seconds.
  assert.ok(millis < 2_000, `${millis} ms`);
  assert.equal(gathering.release().length, COUNT);
});

test('allocates no more than the length of a large piece', () => {
  const gathering = new ByteBuffer();
  gathering.add(Buffer.alloc(65_536));
  assert.equal(gathering.release().buffer.byteLength, 65_536);
});
