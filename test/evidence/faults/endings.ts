/* One anonymous connection against a small heap, and connections that the system has accepted when a drain
   begins (docs/deploy.md). */
import { strict as assert } from 'node:assert';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { setTimeout as pass } from 'node:timers/promises';
import { figures } from '../../support/figures.ts';
import { startLoad } from '../../support/load.ts';
import { openFixture, unsignedToken, type ProcessFixture } from '../../faults/process-fixture.ts';

const rows = figures('endings');

const MEBIBYTE = 1024 * 1024;
const SECONDS = 10;
/** The bytes in the system's buffers on both sides of a connection, and in Node. */
const MOST_BYTES = 8 * MEBIBYTE;
const HEAP = { NODE_OPTIONS: '--max-old-space-size=256' };

const FORGED = `Authorization: Bearer ${unsignedToken()}\r\n`;
const SMALL = 'GET /a HTTP/1.1\r\nHost: a\r\n\r\n';
const OF_PARTNER = `GET /api/private HTTP/1.1\r\nHost: a\r\n${FORGED}\r\n`;

/** How each connection begins, and what it then sends endlessly. */
const ATTACKS: Readonly<Record<string, readonly [beginning: string, stream: string]>> = {
  'a forged token, an unread body, small requests': [
    `${OF_PARTNER}POST /nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello`,
    SMALL,
  ],
  'a forged token with a body, small requests': [
    `POST /api/private HTTP/1.1\r\nHost: a\r\n${FORGED}Content-Length: 5\r\n\r\nhello`,
    SMALL,
  ],
  'a forged token, no HTTP, small requests': [`${OF_PARTNER}garbage\r\n\r\n`, SMALL],
  'a forged token, an expectation, small requests': [
    `${OF_PARTNER}GET / HTTP/1.1\r\nHost: a\r\nExpect: more\r\n\r\n`,
    SMALL,
  ],
  'a forged token, an upgrade, bytes': [
    `${OF_PARTNER}GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n`,
    'x'.repeat(1_000),
  ],
  'forged tokens alone': [OF_PARTNER, OF_PARTNER],
};

/** Sends as fast as the service reads. Returns the number of bytes that it read. */
async function pour({ service }: ProcessFixture, beginning: string, stream: string): Promise<number> {
  const socket = connect({ port: service.port, host: '127.0.0.1' });
  socket.on('error', () => {}).resume();
  await once(socket, 'connect');
  socket.write(beginning);
  const piece = stream.repeat(Math.ceil((256 * 1024) / stream.length));
  const end = performance.now() + SECONDS * 1_000;
  while (!socket.destroyed && performance.now() < end && socket.bytesWritten < 256 * MEBIBYTE) {
    if (socket.writableLength < MEBIBYTE) socket.write(piece);
    await pass(1);
  }
  const taken = socket.bytesWritten - socket.writableLength;
  socket.destroy();
  return taken;
}

describe('one connection', { timeout: 240_000 }, () => {
  for (const [what, [beginning, stream]] of Object.entries(ATTACKS)) {
    test(`does not fill the memory of the service while the provider hangs: ${what}`, async (t) => {
      const fixture = await openFixture(t, { environment: HEAP });
      await fixture.provider.fault('all', 'hang-before-headers');
      const taken = await pour(fixture, beginning, stream);
      rows.push({ run: what, 'MB taken': Math.round(taken / 1e5) / 10 });
      assert.equal((await fixture.service.ask('/healthz')).status, 200);
      assert.equal(fixture.service.child.exitCode, null);
      assert.ok(taken <= MOST_BYTES, `${taken} bytes were taken`);
    });
  }
});

describe('a drain', { timeout: 120_000 }, () => {
  test('hardly ever resets a connection that the system has accepted', async (t) => {
    let lost = 0;
    for (let run = 1; run <= 9; run += 1) {
      const { service } = await openFixture(t);
      const load = startLoad({
        port: service.port,
        connections: 32,
        next: () => ({ kind: 'health', bytes: 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n' }),
      });
      await pass(500);
      service.child.kill('SIGTERM');
      assert.equal(await service.exited, 0);
      await load.ended;
      lost += load.tally.lost;
    }
    rows.push({ run: 'nine drains, 32 connections that come again', lost });
    assert.ok(lost <= 2, `${lost} requests were lost`);
  });
});
