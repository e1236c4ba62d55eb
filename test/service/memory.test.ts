/* Nothing of a request may outlive its answer: a connection that is only kept alive would hold as much memory as its caller sent. */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { openWire } from '../support/client.ts';
import { GOOD, HELD, HOST, openListener, post } from '../support/listener.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const CASES: Readonly<Record<string, string>> = {
  'a request': GOOD,
  'a request with an empty body': post('Content-Length: 0\r\n'),
  'a request with 200 fields': `GET /healthz HTTP/1.1\r\n${HOST}${'a:\r\n'.repeat(199)}\r\n`,
};

for (const [what, bytes] of Object.entries(CASES)) {
  test(`keeps nothing of ${what} once it is answered, while the connection is idle`, async (t) => {
    const listener = await openListener(t);
    const kept: WeakRef<object>[] = [];
    listener.server.on('request', (request, response) => kept.push(new WeakRef(request), new WeakRef(response)));
    const wires = await Promise.all(Array.from({ length: 5 }, () => openWire(listener.port)));
    for (const wire of wires) {
      wire.send(bytes);
      await wire.until((text) => text.endsWith('}'));
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
    collectGarbage();
    assert.deepEqual([kept.length, kept.filter((ref) => ref.deref() !== undefined).length], [10, 0]);
    assert.equal(listener.sockets.filter((socket) => !socket.destroyed).length, 5);
  });
}
