/* Nothing of a request may outlive its response, or an idle connection would hold as much memory as its
   client sent. */
import { strict as assert } from 'node:assert';
import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { open } from '../../../src/gate/rules/access.ts';
import { Listener } from '../../../src/service/connection/listener.ts';
import { get } from '../../../src/service/routes/route.ts';
import { openWire } from '../../support/client.ts';
import { TestClock } from '../../support/clock.ts';
import { GOOD, HOST, openListener, post } from '../../support/listener.ts';
import { startRoutes } from '../../support/routes.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Drops what this turn still holds, then collects garbage. */
async function collectAll(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
  collectGarbage();
}

const connectionsOf = (server: Server) => promisify(server.getConnections.bind(server))();

const isKept = (ref: WeakRef<object>) => ref.deref() !== undefined;

/** How many are left. Node lets go of some objects turns later, more on a busy machine; a leak stays. */
async function countKept(kept: readonly WeakRef<object>[]): Promise<number> {
  for (let tries = 0; tries < 50 && kept.some(isKept); tries += 1) await collectAll();
  return kept.filter(isKept).length;
}

const CASES: Readonly<Record<string, string>> = {
  'a request': GOOD,
  'a request with an empty body': post('Content-Length: 0\r\n'),
  'a request with 200 fields': `GET /healthz HTTP/1.1\r\n${HOST}${'a:\r\n'.repeat(199)}\r\n`,
};

for (const [what, bytes] of Object.entries(CASES)) {
  test(`keeps nothing of ${what} once it is answered, while the connection is idle [G13]`, async (t) => {
    const listener = await openListener(t);
    const kept: WeakRef<object>[] = [];
    listener.server.on('request', (request, response) =>
      kept.push(new WeakRef(request), new WeakRef(response)),
    );
    const wires = await Promise.all(Array.from({ length: 5 }, () => openWire(listener.port)));
    for (const wire of wires) {
      wire.send(bytes);
      await wire.until((text) => text.endsWith('}'));
    }
    assert.deepEqual([kept.length, await countKept(kept)], [10, 0]);
    assert.equal(listener.sockets.filter((socket) => !socket.destroyed).length, 5);
  });
}

test('keeps nothing of a request whose client has left, even if its handler never ends [G13]', async (t) => {
  const hold = () => new Promise<never>(() => {});
  const environment = { HANDLER_TIMEOUT_SECONDS: '0' };
  const { port, server, stop } = await startRoutes({ routes: [get('/hold', open, hold)], environment });
  t.after(stop);
  const kept: WeakRef<object>[] = [];
  server.on('request', (request, response) => kept.push(new WeakRef(request), new WeakRef(response)));
  const wires = await Promise.all(Array.from({ length: 5 }, () => openWire(port)));
  for (const wire of wires) wire.send(`GET /hold HTTP/1.1\r\n${HOST}\r\n`);
  while (kept.length < 10) await new Promise(setImmediate);
  for (const wire of wires) wire.socket.resetAndDestroy();
  while ((await connectionsOf(server)) > 0) await new Promise(setImmediate);
  assert.equal(await countKept(kept), 0);
});

test('keeps at most the allowed fields of an endless header [G13]', async (t) => {
  const listener = await openListener(t);
  const wires = await Promise.all(Array.from({ length: 100 }, () => openWire(listener.port)));
  const begun = Buffer.from(`GET /healthz HTTP/1.1\r\n${HOST}${'ab:cd\r\n'.repeat(2_300)}`);
  await collectAll();
  const before = process.memoryUsage().heapUsed;
  for (const wire of wires) wire.send(begun);
  const areRead = () => listener.sockets.every(({ bytesRead }) => bytesRead === begun.length);
  while (!areRead()) await new Promise(setImmediate);
  await collectAll();
  const kibibytes = (process.memoryUsage().heapUsed - before) / 1024 / wires.length;
  for (const wire of wires) wire.destroy();
  // A leak takes at least 145 KiB a connection.
  assert.ok(kibibytes < 60, `${kibibytes} KiB`);
});

test('keeps nothing of an ended connection [G13]', async (t) => {
  const { server } = new Listener({} as never, new TestClock(), 15_000);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  const kept: WeakRef<object>[] = [];
  server.on('connection', (socket) => kept.push(new WeakRef(socket)));
  for (let count = 0; count < 5; count += 1) {
    const wire = await openWire((server.address() as AddressInfo).port);
    while (kept.length <= count) await new Promise(setImmediate);
    wire.destroy();
  }
  const connections = () => new Promise((resolve) => server.getConnections((_, count) => resolve(count)));
  while ((await connections()) !== 0) await new Promise(setImmediate);
  assert.deepEqual([kept.length, await countKept(kept)], [5, 0]);
});

test('keeps nothing of a stopped server', async () => {
  const stopped = async () => {
    const responder = { hold() {}, release() {}, whenIdle: (then: () => void) => then() };
    const listener = new Listener(responder as never, new TestClock(), 15_000);
    const { server } = listener;
    await once(server.listen(0, '127.0.0.1'), 'listening');
    assert.equal(await listener.stop(), 'drained');
    return new WeakRef(server);
  };

  assert.equal(await countKept([await stopped()]), 0);
});
