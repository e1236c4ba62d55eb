/* Keys replaced every few seconds under load: no valid token is refused, and a withdrawn key ends with the
   next refresh (§7). */
import { strict as assert } from 'node:assert';
import { describe, test } from 'node:test';
import { setTimeout as pass } from 'node:timers/promises';
import { makeSigningKey } from '../../idp/keys.ts';
import { signJws } from '../../idp/tokens.ts';
import { figures } from '../../support/figures.ts';
import { getBytes } from '../../support/load.ts';
import { FetchWatch } from '../../support/watch.ts';
import {
  assertUntroubled,
  openFixture,
  privately,
  startGoodLoad,
  warnings,
} from '../../faults/process-fixture.ts';

const rows = figures('rotation under load');
/**
 * An unknown key makes the service fetch once in five seconds, so keys that change faster may wait that long.
 */
const BETWEEN_ROTATIONS = 5_300;

describe('the service under load', { timeout: 120_000 }, () => {
  test('takes old and new keys as long as they are published, and no longer', async (t) => {
    // Making keys would delay the load.
    const keys = Array.from({ length: 7 }, () => makeSigningKey());
    const fixture = await openFixture(t);
    const { provider, service } = fixture;
    const issue = ({ kid, privateKey }: (typeof keys)[0]) => {
      const claims = {
        iss: provider.issuer,
        aud: provider.audience,
        sub: 'auth0|user',
        exp: Math.floor(Date.now() / 1000) + 600,
      };
      return signJws({ alg: 'RS256', kid }, claims, privateKey);
    };
    const publish = (held: typeof keys) => provider.publish({ keys: held.map(({ publicJwk }) => publicJwk) });
    let held = keys.slice(0, 1);
    publish(held);
    assert.equal((await privately(fixture, issue(held[0]!))).status, 200);
    const tokensOf = (of: typeof keys) => of.flatMap((key) => [issue(key), issue(key), issue(key)]);
    let tokens = tokensOf(held);
    let count = 0;

    const next = () => {
      count += 1;
      return { kind: 'valid', bytes: getBytes('/api/private', tokens[count % tokens.length]) };
    };

    const load = startGoodLoad(fixture, { next });
    const watch = new FetchWatch(provider);
    t.after(() => watch.stop());
    let withdrawnRefused = 0;
    for (const key of keys.slice(1)) {
      await pass(BETWEEN_ROTATIONS);
      const [withdrawn, kept] = held.length > 1 ? [held[0], held.slice(1)] : [undefined, held];
      const before = withdrawn && issue(withdrawn);
      if (before !== undefined) assert.equal((await privately(fixture, before)).status, 200);
      tokens = tokensOf(kept);
      held = [...kept, key];
      publish(held);
      // The new key is accepted at first sight.
      tokens = [...tokens, ...tokensOf([key])];
      assert.equal((await privately(fixture, issue(key))).status, 200);
      if (withdrawn === undefined || before === undefined) continue;
      for (const token of [before, issue(withdrawn)]) {
        const { status, body } = await privately(fixture, token);
        assert.deepEqual([status, body.error], [401, 'invalid_token']);
        withdrawnRefused += 1;
      }
    }
    const tally = await load.stop();
    rows.push({
      rotations: keys.length - 1,
      requests: tally.answered,
      refused: tally.countExcept('valid 200'),
      lost: tally.lost,
      'longest gap ms': Math.round(tally.longestGap),
      'p99 ms': tally.latencies.percentile(0.99),
      fetches: watch.starts.length,
      'withdrawn tokens refused': withdrawnRefused,
    });
    assertUntroubled(tally);
    assert.deepEqual(warnings(service), []);
  });
});
