/* Several requests on one connection, and garbage among them (contract §3). */
import { strict as assert } from 'node:assert';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { exchange, openWire } from '../support/client.ts';
import { CONNECT, GARBAGE, GOOD, HELD, HOST, LAST, openHouse, openUsedWire, post } from '../support/house.ts';
import { assertRefused, MALFORMED, statusesIn } from '../support/raw-answers.ts';

describe('a connection with several requests', { timeout: 30_000 }, () => {
  test('answers a good request before it refuses the garbage behind it', async (t) => {
    const { port } = await openHouse(t);
    const received = await exchange(port, `${GOOD}${GARBAGE}`);
    assertRefused(received, 400, 'invalid_request', MALFORMED, 2);
    assert.deepEqual(statusesIn(received), [200, 400]);
  });

  test('refuses garbage on a connection that has been used', async (t) => {
    const { port } = await openHouse(t);
    const wire = await openUsedWire(port);
    wire.send(GARBAGE);
    assertRefused(await wire.untilClosed(), 400, 'invalid_request', MALFORMED, 2);
  });

  test('waits with the refusal until the request before the garbage is answered', async (t) => {
    const house = await openHouse(t);
    const arrival = house.held();
    const received = exchange(house.port, `${HELD}${GARBAGE}`);
    (await arrival)();
    assert.deepEqual(statusesIn(await received), [200, 400]);
  });

  test('waits with the refusal of CONNECT until the request before it is answered [RFC 9112 §9.3.2]', async (t) => {
    const house = await openHouse(t);
    const arrival = house.held();
    const received = exchange(house.port, `${HELD}${CONNECT}`);
    const answer = await arrival;
    await new Promise(setImmediate);
    answer();
    assert.deepEqual(statusesIn(await received), [200, 400]);
  });

  test('survives a client that resets the connection behind CONNECT [RFC 9112 §9.3.2]', async (t) => {
    const house = await openHouse(t);
    const arrival = house.held();
    const wire = await openWire(house.port);
    wire.send(`${HELD}${CONNECT}`);
    const answer = await arrival;
    await new Promise(setImmediate);
    wire.socket.resetAndDestroy();
    await house.gone();
    answer();
    assert.deepEqual(statusesIn(await exchange(house.port, `${GOOD}${LAST}`)), [200, 200]);
  });

  test('gives up after 90 seconds on a connection whose refusal has to wait', async (t) => {
    for (const bytes of [CONNECT, GARBAGE]) {
      const house = await openHouse(t);
      const [arrival, accepted] = [house.held(), once(house.server, 'connection') as Promise<[Socket]>];
      const wire = await openWire(house.port);
      wire.send(`${HELD}${bytes}`);
      const [[socket], answer] = [await accepted, await arrival];
      await new Promise(setImmediate);
      assert.equal(socket.timeout, 90_000);
      socket.emit('timeout');
      await wire.untilClosed();
      await house.gone();
      answer();
    }
  });

  for (const [what, request] of [
    ['nothing', GOOD],
    ['a body', post('Content-Length: 00\r\n')],
  ] as const) {
    test(`outlives a connection that ends in the middle of many requests with ${what} [G8]`, async (t) => {
      const house = await openHouse(t);
      const pad = `X-Pad: ${'p'.repeat(800)}\r\n\r\n`;
      const padded = (text: string) => text.replace('\r\n\r\n', `\r\n${pad}`);
      // The answer that ends the connection is the last of a batch for some of these, and others are under way behind it.
      for (let before = 40; before < 64; before += 1) {
        const wire = await openWire(house.port);
        wire.send(
          padded(GOOD).repeat(before) +
            padded(post('Content-Length: 5\r\n')) +
            'hello' +
            padded(request).repeat(76 - before),
        );
        wire.socket.end(padded(request).repeat(9));
        await wire.untilClosed();
      }
      await house.gone();
      assert.deepEqual(statusesIn(await exchange(house.port, GOOD + LAST)), [200, 200]);
    });
  }

  test('waits with the refusal until every request before the garbage is answered', async (t) => {
    const house = await openHouse(t);
    const arrival = house.held();
    // The second one has its answer at once, which waits behind the first.
    const received = exchange(house.port, `${HELD}GET /nowhere HTTP/1.1\r\n${HOST}\r\n${GARBAGE}`);
    const answer = await arrival;
    await new Promise(setImmediate);
    answer();
    assert.deepEqual(statusesIn(await received), [200, 404, 400]);
  });

  test('remembers the request under way when an earlier one is done', async (t) => {
    const house = await openHouse(t);
    const wire = await openWire(house.port);
    const answers: (() => void)[] = [];
    for (let count = 0; count < 2; count += 1) {
      const arrival = house.held();
      wire.send(HELD);
      answers.push(await arrival);
    }
    answers[0]!();
    await wire.until((text) => text.endsWith('}'));
    const broken = once(house.server, 'clientError');
    wire.send(GARBAGE);
    await broken;
    answers[1]!();
    assert.deepEqual(statusesIn(await wire.untilClosed()), [200, 200, 400]);
  });

  test('refuses garbage once, however much of it comes', async (t) => {
    const house = await openHouse(t);
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on('warning', note);
    t.after(() => process.off('warning', note));
    const wire = await openWire(house.port);
    const arrival = house.held();
    wire.send(HELD);
    const answer = await arrival;
    const [socket] = house.sockets;
    for (let count = 0; count < 12; count += 1) {
      // Each piece must reach the parser by itself.
      const before = socket!.bytesRead;
      wire.send(GARBAGE);
      while (socket!.bytesRead === before && !socket!.destroyed) await new Promise(setImmediate);
    }
    answer();
    assert.deepEqual(statusesIn(await wire.untilClosed()), [200, 400]);
    await new Promise(setImmediate);
    assert.deepEqual(warnings, []);
    assert.equal(house.logs.filter(({ reason }) => reason === 'malformed-http').length, 1);
  });

  test('survives callers that go away in the middle', async (t) => {
    const house = await openHouse(t);
    for (const bytes of ['', 'GET /heal', GOOD, post('Content-Length: 9\r\n', 'abc'), HELD]) {
      const wire = await openWire(house.port);
      const arrival = bytes === HELD ? house.held() : undefined;
      wire.send(bytes);
      await arrival;
      wire.socket.resetAndDestroy();
    }
    await house.gone();
    assert.deepEqual(statusesIn(await exchange(house.port, LAST)), [200]);
  });

  test('lets a refused caller read before the connection is gone, for one second', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const house = await openHouse(t);
    for (const bytes of [GARBAGE, CONNECT]) {
      const wire = await openWire(house.port);
      wire.socket.allowHalfOpen = true;
      wire.send(bytes);
      assert.deepEqual(statusesIn(await wire.untilClosed()), [400]);
      const socket = house.sockets.at(-1)!;
      t.mock.timers.tick(999);
      assert.equal(socket.destroyed, false);
      t.mock.timers.tick(1);
      assert.equal(socket.destroyed, true);
      wire.destroy();
    }
  });

  test('ends with a refused caller that closes its side, without waiting', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const house = await openHouse(t);
    for (const bytes of [GARBAGE, `CONNECT api.test:443 HTTP/1.1\r\n${HOST}\r\n and more`]) {
      assert.deepEqual(statusesIn(await exchange(house.port, bytes)), [400]);
      await house.gone();
    }
  });
});
