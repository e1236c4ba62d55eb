/* How a port that cannot listen fails, and how many turns of the event loop a port waits for connections before
   it closes. */
import { strict as assert } from 'node:assert';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import { listen, whenQuiet } from '../../../src/service/connection/listen.ts';
import { TestClock } from '../../support/clock.ts';

test('a port that Node denies at once, as its permission model does, fails with its address', async () => {
  const denied = Object.assign(new Error('Access to this API has been restricted'), {
    code: 'ERR_ACCESS_DENIED',
  });
  const server = Object.assign(new EventEmitter(), {
    listen() {
      throw denied;
    },
  });
  await assert.rejects(listen(server as never, 3001, '::1'), {
    code: 'ERR_ACCESS_DENIED',
    port: 3001,
    host: '::1',
  });
});

function beginClosing() {
  const server = new EventEmitter();
  const clock = new TestClock();
  // The process has run for a while.
  clock.advance(5_000);
  let isClosed = false;

  whenQuiet(server as never, clock, () => {
    isClosed = true;
  });

  /** Whether the port is closed after so many turns. */
  async function isClosedAfter(turns: number) {
    for (let turn = 0; turn < turns; turn += 1) await new Promise(setImmediate);
    return isClosed;
  }

  return { server, clock, isClosedAfter };
}

test('a port closes in the thousandth turn without a new connection', async () => {
  const { isClosedAfter } = beginClosing();
  assert.equal(await isClosedAfter(999), false);
  assert.equal(await isClosedAfter(1), true);
});

test('a port counts turns anew from each new connection', async () => {
  const { server, isClosedAfter } = beginClosing();
  assert.equal(await isClosedAfter(999), false);
  server.emit('connection');
  assert.equal(await isClosedAfter(999), false);
  assert.equal(await isClosedAfter(1), true);
});

test('a port closes from a quarter of a second on after one whole turn without a new connection', async () => {
  const { server, clock, isClosedAfter } = beginClosing();
  clock.advance(250);
  server.emit('connection');
  // This turn had begun when the connection came.
  assert.equal(await isClosedAfter(1), false);
  assert.equal(await isClosedAfter(1), true);
});

test('a port does not close in a long turn, in which a connection may have come that Node has not seen', async () => {
  const { clock, isClosedAfter } = beginClosing();
  assert.equal(await isClosedAfter(999), false);
  clock.advance(0.1);
  assert.equal(await isClosedAfter(1), false);
  clock.advance(0.09);
  assert.equal(await isClosedAfter(1), true);
});

test('a port closes after a second, even if no turn is short', async () => {
  const { clock, isClosedAfter } = beginClosing();
  for (let turn = 1; turn < 1_000; turn += 1) {
    clock.advance(1);
    assert.equal(await isClosedAfter(1), false);
  }
  clock.advance(1);
  assert.equal(await isClosedAfter(1), true);
});

test('a port closes before anything else is done, since a connection could come meanwhile', async () => {
  const order: string[] = [];
  const server = Object.assign(new EventEmitter(), { _handle: { close: () => order.push('port') } });
  await new Promise<void>((resolve) => {
    whenQuiet(server as never, new TestClock(), () => {
      order.push('rest');
      resolve();
    });
  });
  assert.deepEqual(order, ['port', 'rest']);
});
