/* Replicas restarted in turn behind nginx and haproxy, as in test/example, under all the load that they can
   serve: no GET and no POST is lost or repeated (docs/deploy.md). */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { rollOut } from '../../faults/rollout.ts';
import { HAPROXY, NGINX } from '../../support/balancer.ts';
import { figures } from '../../support/figures.ts';
import { withReason } from '../../support/skipped.ts';

const rows = figures('rollouts');

for (const [balancer, delaySeconds] of [
  [NGINX, 1],
  [HAPROXY, 3],
] as const) {
  const { name, missing } = balancer;
  for (const [kind, load] of [
    ['steady', { connections: 16 }],
    ['gentle', { connections: 32, pauseMillis: 100 }],
  ] as const) {
    test(
      withReason(`loses nothing behind ${name} in twelve restarts under ${kind} load`, missing),
      { timeout: 240_000, skip: missing !== undefined },
      async (t) => {
        const { tally, taken, codes } = await rollOut(t, { balancer, delaySeconds, rounds: 4, load });
        const lost = tally.countExcept('GET 200', 'POST 201') + tally.lost + tally.lostAfterClose;
        const doneTwice = taken.length - new Set(taken).size;
        rows.push({
          balancer: name,
          load: kind,
          sent: tally.sent,
          answered: tally.answered,
          lost,
          'done twice': doneTwice,
          'p99 ms': tally.latencies.percentile(0.99),
          'longest gap ms': Math.round(tally.longestGap),
        });
        assert.deepEqual([lost, doneTwice, codes], [0, 0, Array(12).fill(0)]);
      },
    );
  }
}
