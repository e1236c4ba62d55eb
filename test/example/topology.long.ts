/* The topology of compose.yaml as processes of this machine: a balancer with the very nginx.conf or haproxy.cfg,
   three replicas with the environment of compose.yaml, a store with its command line. */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { startProvider } from '../idp/provider.ts';
import { HAPROXY, NGINX } from '../support/balancer.ts';
import { ask } from '../support/client.ts';
import { makeProof, makeProofKey } from '../support/proof.ts';
import { NO_STORE, startRedis } from '../support/redis.ts';
import { runProcess } from '../support/process.ts';
import { withReason } from '../support/skipped.ts';

const PASSWORD = 'a1'.repeat(32);
const FORGETS_NOTHING = '--maxmemory 256mb --maxmemory-policy noeviction --appendonly yes'.split(' ');

for (const { name, missing = NO_STORE, start } of [NGINX, HAPROXY]) {
  test(
    withReason(
      `three replicas behind the ${name} of the example accept a proof once between them, and lose no request when one replica drains [RFC 9449 §11.1]`,
      missing,
    ),
    { timeout: 120_000, skip: missing !== undefined },
    async (t) => {
      const provider = await startProvider({ host: '127.0.0.1' });
      t.after(() => provider.stop());
      const store = await startRedis([...FORGETS_NOTHING, '--requirepass', PASSWORD], PASSWORD);
      t.after(store.stop);
      const publicUrl = 'http://localhost:8080';
      const environment = {
        PROFILE: 'B',
        IDP_DOMAIN: provider.domain,
        IDP_AUDIENCE: provider.audience,
        IDP_DPOP_MODE: 'ALLOWED',
        IDP_DPOP_REPLAY_STORE: `redis://:${PASSWORD}@127.0.0.1:${store.port}`,
        PUBLIC_URL: publicUrl,
        SHUTDOWN_DELAY_SECONDS: '3',
      };
      const replicas = await Promise.all([1, 2, 3].map(() => runProcess(t, { environment })));
      for (const replica of replicas) {
        await replica.logged('signing keys loaded');
        await replica.logged('replay store ready');
      }
      const port = await start(
        t,
        replicas.map((replica) => replica.port),
      );
      const key = makeProofKey();
      const token = provider.issue({ cnf: { jkt: key.thumbprint } });

      const statusesOf = async (uses: number) => {
        const nowSeconds = Math.floor(Date.now() / 1000);
        const proof = makeProof(key, { token, uri: `${publicUrl}/api/private`, nowSeconds });
        const headers = { Authorization: `DPoP ${token}`, DPoP: proof };
        const responses = Array.from({ length: uses }, () => ask(port, '/api/private', { headers }));
        return (await Promise.all(responses)).map(({ status }) => status).sort();
      };

      for (let round = 0; round < 20; round += 1) assert.deepEqual(await statusesOf(3), [200, 401, 401]);

      const [leaving] = replicas;
      leaving!.child.kill('SIGTERM');
      const left = leaving!.exited;
      let isGone = false;
      void left.then(() => {
        isGone = true;
      });
      while (!isGone) assert.deepEqual(await statusesOf(1), [200]);
      assert.equal(await left, 0);
    },
  );
}
