/* The memory of an arriving body: its bytes, however small its pieces, and nothing once it is not awaited. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { RequestStream } from '../../../src/service/request/exchange.ts';
import { CLIENT_GONE, readJson } from '../../../src/service/routes/body.ts';
import { exchangeOf } from '../../support/exchange.ts';

const PIECE_BYTES = 65_536;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** A request whose body is being read, and the outcome. */
function begin(limitBytes: number, request = new RequestStream(new Socket())) {
  Object.assign(request.headers, { 'transfer-encoding': 'chunked', 'content-type': 'application/json' });
  request.rawHeaders.push('Content-Type', 'application/json');
  const types = ['application/json'];
  return {
    request,
    body: readJson(exchangeOf(request, new ServerResponse(request)).exchange, types, limitBytes),
  };
}

test('a body that arrives byte by byte keeps none of its pieces', async () => {
  const { request, body } = begin(10_000);
  const text = JSON.stringify('x'.repeat(998));
  const memories: WeakRef<ArrayBufferLike>[] = [];
  for (const character of text) {
    const piece = Buffer.alloc(PIECE_BYTES, character);
    memories.push(new WeakRef(piece.buffer));
    request.push(piece.subarray(0, 1));
  }
  // The target of a WeakRef lives until the end of the job that made it.
  await new Promise(setImmediate);
  collect();
  const kept = memories.filter((memory) => memory.deref() !== undefined).length;
  assert.ok(kept < 10, `${kept} of ${text.length} pieces are kept`);

  request.push(null);
  assert.equal(await body, 'x'.repeat(998));
});

test('a body that is too large keeps none of its bytes, even while its request lives', async () => {
  const before = process.memoryUsage().arrayBuffers;
  const { request, body } = begin(1_000_000);
  request.push(Buffer.alloc(32_000_000));
  await assert.rejects(body, ({ refusal }) => refusal.reason === 'body-too-large');
  let kept = Infinity;
  // On a busy machine, collected objects are finalized some turns later.
  for (let turn = 0; turn < 100 && kept >= 8_000_000; turn += 1) {
    collect();
    await nextTurn();
    kept = process.memoryUsage().arrayBuffers - before;
  }
  assert.ok(kept < 8_000_000, `${kept} bytes are kept`);
  assert.equal(request.destroyed, false);
});

test('a body is no longer awaited once its client has gone', async () => {
  const { request, body } = begin(10_000);
  request.push(Buffer.from('{'));
  request.socket.destroy();
  request.destroy();
  await assert.rejects(body, (failure) => failure === CLIENT_GONE);
});

test('a request that closes before its body is complete counts as abandoned by its client, even if its socket is still readable', async () => {
  const { request, body } = begin(10_000);
  Object.defineProperty(request.socket, 'readable', { value: true });
  request.emit('close');
  await assert.rejects(body, (failure) => failure === CLIENT_GONE);
});

test('a body is not awaited at all if its client has already gone', async () => {
  const request = new RequestStream(new Socket());
  request.socket.destroy();
  request.destroy();
  await once(request, 'close');
  await assert.rejects(begin(10_000, request).body, (failure) => failure === CLIENT_GONE);
});
