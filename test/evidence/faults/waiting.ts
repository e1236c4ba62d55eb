/* Requests while others wait: for the keys of a partner that hangs (§14), or for a slow store (§15). */
import { strict as assert } from 'node:assert';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import { REFUSALS } from '../../../src/verify/base/refusal.ts';
import { startProvider } from '../../idp/provider.ts';
import { afterGreeting, startFakeStore } from '../../options/fake-store.ts';
import { figures } from '../../support/figures.ts';
import { getBytes, startLoad } from '../../support/load.ts';
import { makeProof, makeProofKey } from '../../support/proof.ts';
import { until } from '../../support/watch.ts';
import {
  addKey,
  assertUntroubled,
  openFixture,
  privately,
  startGoodLoad,
  unsignedShot,
} from '../../faults/process-fixture.ts';

const rows = figures('requests that wait');
const FULL = REFUSALS.temporarily_unavailable['too-many-waiting'];

/** More than the limit. */
const FORGED = 1_100;
const PROOFS = 16;
const REPLY_MILLIS = 500;
/** A second, and the time that a busy machine needs. */
const DEADLINE_MILLIS = 3_000;
const URI = 'https://api.test/api/private';

describe('the service', { timeout: 120_000 }, () => {
  test('takes a key that is rotated in while forged tokens of a partner that hangs fill the room of that partner', async (t) => {
    const partner = await startProvider({ host: '127.0.0.1', audience: 'orders-api' });
    t.after(() => partner.stop());
    await partner.fault('all', 'hang-before-headers');
    const environment = {
      ISSUERS: 'partner',
      ISSUER_PARTNER_DOMAIN: partner.domain,
      ISSUER_PARTNER_AUDIENCE: partner.audience,
    };
    const fixture = await openFixture(t, { environment });
    const beside = startGoodLoad(fixture);
    let full = 0;
    const flood = startLoad({
      port: fixture.service.port,
      connections: FORGED,
      pauseMillis: 100,
      next: () => unsignedShot('forged', undefined, { iss: partner.issuer }),
      heed: ({ text }) => {
        if (text.includes(FULL)) full += 1;
      },
    });
    await until('the room is full', () => full > 0, 30);
    const { status } = await privately(fixture, addKey(fixture.provider, 'rotated in'));
    const forged = await flood.stop();
    const good = await beside.stop();
    rows.push({
      'waits for': 'keys of a partner that hangs',
      requests: forged.answered,
      'turned away at once': full,
      'good beside': good.answered,
    });
    assert.equal(status, 200);
    assert.deepEqual([forged.except('forged 503'), forged.lost], [{}, 0]);
    assertUntroubled(good);
  });

  test('answers every proof within a second or so when the store answers two a second', async (t) => {
    const due: Socket[] = [];
    const timer = setInterval(() => due.shift()?.write('+OK\r\n'), REPLY_MILLIS);
    t.after(() => clearInterval(timer));
    const store = await startFakeStore(
      t,
      afterGreeting((_, socket) => void due.push(socket)),
    );
    const environment = {
      PUBLIC_URL: new URL(URI).origin,
      IDP_DPOP_MODE: 'ALLOWED',
      IDP_DPOP_REPLAY_STORE: `redis://127.0.0.1:${store.port}`,
    };
    const fixture = await openFixture(t, { environment });
    await fixture.service.logged('replay store ready');

    const key = makeProofKey();
    const token = fixture.provider.issue({ cnf: { jkt: key.thumbprint } });
    const nowSeconds = Math.floor(Date.now() / 1000);
    const shots = Array.from({ length: PROOFS }, () => {
      const proof = makeProof(key, { token, uri: URI, nowSeconds });
      const fields = `Authorization: DPoP ${token}\r\nDPoP: ${proof}\r\n`;
      return { kind: 'proof', bytes: getBytes('/api/private', undefined, fields) };
    });
    const beside = startGoodLoad(fixture);
    let longest = 0;
    const { ended, tally } = startLoad({
      port: fixture.service.port,
      connections: PROOFS,
      next: () => shots.pop(),
      heed: ({ millis }) => {
        longest = Math.max(longest, millis);
      },
    });
    await ended;
    const good = await beside.stop();
    rows.push({
      'waits for': 'a store that is slow',
      requests: tally.answered,
      'longest ms': longest,
      'good beside': good.answered,
    });
    assert.deepEqual([tally.except('proof 200', 'proof 503'), tally.lost, tally.answered], [{}, 0, PROOFS]);
    assert.ok(longest < DEADLINE_MILLIS, `${longest} ms`);
    assertUntroubled(good);
  });
});
