/* A revocation store that fails in each way, under load: requests with a token get 503 and nothing else,
   public ones go on, and all is well within two seconds of the end of the fault (docs/revocation.md). */
import { strict as assert } from 'node:assert';
import { describe, test } from 'node:test';
import { startFakeStore, type Say } from '../../options/fake-store.ts';
import { except, storeWith } from '../../options/redis/revocations-fixture.ts';
import { figures } from '../../support/figures.ts';
import { getBytes, startLoad } from '../../support/load.ts';
import { until } from '../../support/watch.ts';
import { openFixture, privately } from '../../faults/process-fixture.ts';

const rows = figures('faults of the revocation store');

const HELD_SECONDS = 2;
const RECOVERY_SECONDS = 2;

const FAULTS: readonly (readonly [what: string, say: Say])[] = [
  ['no reply', except('MGET', () => undefined)],
  ['half a reply', except('MGET', '*9\r\n$-1\r\n')],
  ['the right is gone', except('MGET', '-NOPERM x\r\n')],
  ['no memory', except('MGET', '-OOM x\r\n')],
  ['another slot', except('MGET', '-CROSSSLOT x\r\n')],
  ['another form', except('MGET', '+QUEUED\r\n')],
  ['connections end', (_, socket) => void socket.destroy()],
  ['no greeting', () => '-LOADING x\r\n'],
];

describe('the service', { timeout: 240_000 }, () => {
  for (const [what, say] of FAULTS) {
    test(`answers 503 to tokens alone, and is well again in time, when the revocation store fails: ${what}`, async (t) => {
      const store = await startFakeStore(t, storeWith(new Map()));
      const environment = { REVOCATION_STORE: `redis://127.0.0.1:${store.port}` };
      const fixture = await openFixture(t, { environment });
      await fixture.service.logged('revocation store ready');
      const token = fixture.provider.issue();
      let longest = 0;

      const load = startLoad({
        port: fixture.service.port,
        connections: 8,
        pauseMillis: 5,
        next: () => ({ kind: 'token', bytes: getBytes('/api/private', token) }),
        heed: ({ millis }) => {
          longest = Math.max(longest, millis);
        },
      });
      const beside = startLoad({
        port: fixture.service.port,
        connections: 4,
        pauseMillis: 5,
        next: () => ({ kind: 'public', bytes: getBytes('/api/public') }),
      });

      const isRefused = async () => (await privately(fixture, token)).status === 503;
      const isAccepted = async () => (await privately(fixture, token)).status === 200;
      const good = store.say;
      store.say = say;
      if (what === 'connections end' || what === 'no greeting') store.sockets.at(-1)?.destroy();
      await until('the fault is noticed', isRefused, 5);
      const { answered } = beside.tally;
      await new Promise((resolve) => setTimeout(resolve, HELD_SECONDS * 1_000));
      assert.ok(beside.tally.answered > answered);
      assert.ok(await isRefused());

      store.say = good;
      const seconds = await until('tokens pass again', isAccepted, RECOVERY_SECONDS + 1);
      const tokens = await load.stop();
      const publics = await beside.stop();
      rows.push({ fault: what, requests: tokens.answered, 'longest ms': longest, 'recovery s': seconds });
      assert.deepEqual([tokens.except('token 200', 'token 503'), tokens.lost], [{}, 0]);
      assert.deepEqual([publics.except('public 200'), publics.lost], [{}, 0]);
      assert.ok(seconds <= RECOVERY_SECONDS + 0.5, `${seconds} s`);
    });
  }
});
