/* What a body costs while it arrives: its bytes, however small its pieces. */
import assert from 'node:assert/strict';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { readBody } from '../../src/request/body.ts';

const PIECE_BYTES = 65_536;

test('a body that comes byte by byte keeps none of the pieces that brought it', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const request = new IncomingMessage(new Socket());
  Object.assign(request.headers, { 'transfer-encoding': 'chunked', 'content-type': 'application/json' });
  request.rawHeaders.push('Content-Type', 'application/json');
  const body = readBody(request, new ServerResponse(request), {
    limitBytes: 10_000,
    types: ['application/json'],
  });

  const text = JSON.stringify('x'.repeat(998));
  const memories: WeakRef<ArrayBufferLike>[] = [];
  for (const character of text) {
    const piece = Buffer.alloc(PIECE_BYTES, character);
    memories.push(new WeakRef(piece.buffer));
    request.emit('data', piece.subarray(0, 1));
  }
  // What a reference was made to lives as long as the job that made it.
  await new Promise(setImmediate);
  collect();
  const kept = memories.filter((memory) => memory.deref() !== undefined).length;
  assert.ok(kept < 10, `${kept} of ${text.length} pieces are kept`);

  request.emit('end');
  assert.equal(await body, 'x'.repeat(998));
});
