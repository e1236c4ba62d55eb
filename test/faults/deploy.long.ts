/* The short form of evidence/faults/deploy.ts: SIGTERM under load loses no request (docs/deploy.md). */
import { strict as assert } from 'node:assert';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { startLoad, type LoadResponse } from '../support/load.ts';
import { openFixture, validShots } from './process-fixture.ts';

describe('the process under load', { timeout: 120_000 }, () => {
  test('answers every request that was sent before its SIGTERM, says Connection: close, and exits with 0', async (t) => {
    const { provider, service } = await openFixture(t);
    const progress = new EventTarget();
    const heads: string[] = [];

    const heed = ({ head }: LoadResponse) => {
      heads.push(head);
      if (heads.length === 1_000) progress.dispatchEvent(new Event('loaded'));
    };

    const underWay = once(progress, 'loaded');
    const { tally, ended } = startLoad({
      port: service.port,
      connections: 8,
      next: validShots(provider),
      reconnects: () => false,
      heed,
    });
    await underWay;
    service.child.kill('SIGTERM');
    assert.equal(await service.exited, 0);
    await ended;
    assert.deepEqual(
      [tally.except('valid 200'), tally.lost, tally.lostAfterClose, tally.closedIdle],
      [{}, 0, 0, 0],
    );
    assert.ok(tally.answered >= 1_000 && tally.answered === tally.sent);
    // The last response on each connection.
    assert.equal(heads.filter((head) => /\r\nConnection: close/.test(head)).length, 8);
  });
});
