/* The memory of ten thousand proofs that wait for a store that never replies, again and again. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { openClient } from '../fake-store.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const MEBIBYTE = 2 ** 20;
const WAITING = 10_000;
const ROUNDS = 20;
const MOST_BYTES_OF_ONE = 2_000;

test('keeps less than two kilobytes for each of ten thousand waiting proofs, and nothing for earlier ones', async (t) => {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.write('+PONG\r\n')).resume();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const client = openClient(t, `redis://127.0.0.1:${(server.address() as AddressInfo).port}`);

  const used = () => {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };

  const between: number[] = [];
  for (let round = 1; round <= ROUNDS; round += 1) {
    await client.greeted();
    const before = used();
    const verdicts = Array.from({ length: WAITING }, (_, index) => client.record(`round ${round} ${index}`));
    assert.ok(verdicts.every((verdict) => verdict instanceof Promise));
    for (let more = 0; more < 5 * WAITING; more += 1) {
      assert.equal(client.record(`more ${more}`), 'unavailable');
    }
    await new Promise(setImmediate);
    const bytes = (used() - before) / WAITING;
    assert.ok(bytes < MOST_BYTES_OF_ONE, `${bytes} bytes`);

    client.clock.advance(1_000);
    assert.deepEqual(new Set(await Promise.all(verdicts)), new Set(['unavailable']));
    await client.lost();
    between.push(used());
    client.clock.advance(2_000);
  }
  const growth = between.at(-1)! - between[4]!;
  assert.ok(growth < MEBIBYTE, `${growth} bytes more after ${ROUNDS} rounds than after five`);
});
