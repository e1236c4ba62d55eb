/* The topology of compose.yaml as processes of this machine: nginx with the very nginx.conf, three replicas with
   the environment of compose.yaml, a store with its command line. */
import { strict as assert } from 'node:assert';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test, type TestContext } from 'node:test';
import { startProvider } from '../idp/provider.ts';
import { ask } from '../support/client.ts';
import { makeProof, makeProofKey } from '../support/proof.ts';
import { freePort } from '../support/free-port.ts';
import { NO_STORE, startRedis } from '../support/redis.ts';
import { runProcess } from '../support/service.ts';
import { withReason } from '../support/skipped.ts';

const hasNginx = spawnSync('nginx', ['-v']).error === undefined;
const missing = hasNginx ? NO_STORE : 'nginx is not installed';
const PASSWORD = 'a1'.repeat(32);
const FORGETS_NOTHING = '--maxmemory 256mb --maxmemory-policy noeviction --appendonly yes'.split(' ');

/** nginx with the configuration of the example, in front of these ports instead of the name of the replicas. */
async function startBalancer(context: TestContext, ports: readonly number[]): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-nginx-'));
  const port = await freePort();
  const servers = ports.map((one) => `server 127.0.0.1:${one} max_fails=1 fail_timeout=5s;`);
  const conf = readFileSync(new URL('nginx.conf', import.meta.url), 'utf8')
    .replace(/server api:3001 .*/, servers.join('\n'))
    .replace('error_log stderr;', '')
    .replace('listen 8080;', `listen 127.0.0.1:${port};`)
    .replaceAll('/tmp/', `${directory}/`);
  const file = join(directory, 'nginx.conf');
  writeFileSync(file, conf);
  const words = ['-p', directory, '-e', 'stderr', '-c', file];
  const checked = spawnSync('nginx', [...words, '-t'], { encoding: 'utf8' });
  assert.equal(checked.status, 0, checked.stderr);
  // It says at this level when it has bound its port and starts to work.
  const said = ['-g', 'daemon off; error_log stderr notice;'];
  const child = spawn('nginx', [...words, ...said], { stdio: ['ignore', 'ignore', 'pipe'] });
  context.after(async () => {
    child.kill('SIGTERM');
    await once(child, 'exit');
    rmSync(directory, { recursive: true });
  });

  for await (const line of createInterface(child.stderr)) {
    if (line.includes('start worker processes')) break;
  }
  child.stderr.resume();
  return port;
}

test(
  withReason(
    'three replicas behind the balancer of the example take a proof once between them, and lose nothing when one drains [RFC 9449 §11.1]',
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
      SHUTDOWN_DELAY_SECONDS: '1',
    };
    const replicas = await Promise.all([1, 2, 3].map(() => runProcess(t, { environment })));
    for (const replica of replicas) {
      await replica.logged('signing keys loaded');
      await replica.logged('replay store ready');
    }
    const port = await startBalancer(
      t,
      replicas.map((replica) => replica.port),
    );
    const key = makeProofKey();
    const token = provider.issue({ cnf: { jkt: key.thumbprint } });

    const statusesOf = async (uses: number) => {
      const nowSeconds = Math.floor(Date.now() / 1000);
      const proof = makeProof(key, { token, uri: `${publicUrl}/api/private`, nowSeconds });
      const headers = { Authorization: `DPoP ${token}`, DPoP: proof };
      const answers = Array.from({ length: uses }, () => ask(port, '/api/private', { headers }));
      return (await Promise.all(answers)).map(({ status }) => status).sort();
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
