/* The short form of evidence/faults/rollout.ts: replicas restarted in turn lose no request
   (docs/deploy.md). */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { HAPROXY, NGINX } from '../support/balancer.ts';
import { withReason } from '../support/skipped.ts';
import { rollOut } from './rollout.ts';

for (const [balancer, delaySeconds] of [
  // Two restarts within a few seconds.
  [NGINX, 1],
  // A little longer than two of its checks.
  [HAPROXY, 3],
] as const) {
  const { name, missing } = balancer;
  test(
    withReason(`loses no GET and no POST, and processes no POST twice, in a rollout behind ${name}`, missing),
    { timeout: 120_000, skip: missing !== undefined },
    async (t) => {
      const { tally, taken, codes } = await rollOut(t, {
        balancer,
        delaySeconds,
        rounds: 2,
        load: { connections: 8, pauseMillis: 20 },
      });
      assert.deepEqual([tally.except('GET 200', 'POST 201'), tally.lost, tally.lostAfterClose], [{}, 0, 0]);
      const orders = tally.statuses.get('POST 201') ?? 0;
      assert.ok(orders > 300);
      assert.deepEqual([taken.length, new Set(taken).size], [orders, orders]);
      assert.deepEqual(codes, Array(6).fill(0));
    },
  );
}
