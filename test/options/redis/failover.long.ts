/* A real cluster of six nodes of which one is killed, and a real failover by sentinels: no revoked token
   passes, no proof passes twice, and all is well again within two seconds of the end of the failover. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setTimeout as pass } from 'node:timers/promises';
import { slotOf } from '../../../src/options/redis/discovery.ts';
import { SharedReplayStore } from '../../../src/options/redis/replay.ts';
import { makeRevocations } from '../../../src/options/redis/revocations.ts';
import { systemClock } from '../../../src/verify/base/clock.ts';
import { Part } from '../../../src/verify/base/option.ts';
import { Refused } from '../../../src/verify/base/refusal.ts';
import { KeySet } from '../../../src/verify/keys/key-set.ts';
import { createTokenVerifier } from '../../../src/verify/token/verify.ts';
import { named, NO_STORE } from '../../support/redis.ts';
import { startRedisCluster, startWatchedRedis } from '../../support/redis-groups.ts';
import { until } from '../../support/watch.ts';
import { THUMBPRINT } from '../fake-store.ts';
import { issue, ISSUER, keySetOf, RULES } from '../../verify/token/issuer.ts';
import { keyFor } from './revocations-fixture.ts';

const options = { skip: NO_STORE !== undefined, timeout: 180_000 };
const PATIENCE_SECONDS = 60;
/** Two seconds, and the time that a busy machine needs. */
const RECOVERY_SECONDS = 10;

/** The index of its master. */
const shareOf = (slot: number) => [5_461, 10_923].filter((first) => slot >= first).length;

const nowSeconds = () => Math.floor(Date.now() / 1000);

const GOOD = issue({ sub: 'good', jti: 'good', exp: nowSeconds() + 600, iat: nowSeconds() });
const REVOKED = issue({ sub: 'bad', jti: 'bad', exp: nowSeconds() + 600, iat: nowSeconds() });

interface Users {
  revoke(): Promise<void>;
  /** `accepted`, or the reason of the refusal. */
  verdict(token: string): Promise<string>;
  record(jti: string): Promise<string>;
  isUp(): boolean;
}

async function openUsers(t: TestContext, address: string): Promise<Users> {
  const revocations = makeRevocations(address, [ISSUER], systemClock);
  t.after(revocations.close);
  const replay = new SharedReplayStore(address, systemClock, () => {});
  t.after(() => replay.close?.());
  const keys = new KeySet('idp', async () => keySetOf(), {
    clock: systemClock,
    log: () => {},
    count: undefined,
  });
  await keys.refresh();
  const content = Part.contentOf(revocations);
  const served = [{ ...RULES, keys }];
  const joined = content.join(served, { clock: systemClock, log: () => {}, count: undefined });
  const verify = joined.protect(createTokenVerifier(served, systemClock, 10));

  async function verdict(token: string) {
    const verified = await verify(token);
    return verified instanceof Refused ? verified.refusal.reason : 'accepted';
  }

  const record = async (jti: string) => replay.record(THUMBPRINT, jti, nowSeconds() + 300, nowSeconds());

  function isUp() {
    const state = replay.state();
    return content.isUp() && 'isUp' in state && state.isUp;
  }

  await until('both stores are ready', isUp, PATIENCE_SECONDS);
  const revoke = () => revocations.revoke({ subject: 'bad' });
  return { revoke, verdict, record, isUp };
}

/** Uses both stores before, during and after a failover. Returns the verdicts on the valid token meanwhile. */
async function survive(
  users: Users,
  fail: () => Promise<void>,
  hasRecovered: () => Promise<boolean>,
): Promise<Set<string>> {
  await users.revoke();
  // Replication takes milliseconds here.
  await pass(200);
  const admitted: string[] = [];
  const seen = new Set<string>();
  let proofs = 0;

  async function useOnce() {
    seen.add(await users.verdict(GOOD));
    assert.notEqual(await users.verdict(REVOKED), 'accepted');
    proofs += 1;
    const jti = `proof ${proofs}`;
    if ((await users.record(jti)) === 'new') admitted.push(jti);
  }

  for (let count = 0; count < 50; count += 1) await useOnce();
  assert.deepEqual([admitted.length, [...seen]], [50, ['accepted']]);
  await pass(200);
  const safe = admitted.slice();

  await fail();

  const isOver = async () => {
    await useOnce();
    return hasRecovered();
  };

  await until('the failover is over', isOver, PATIENCE_SECONDS);

  const isWell = async () => {
    await useOnce();
    return users.isUp() && (await users.verdict(GOOD)) === 'accepted';
  };

  await until('both stores are in use again', isWell, RECOVERY_SECONDS);
  assert.equal(await users.verdict(REVOKED), 'revoked');
  for (const jti of safe) assert.equal(await users.record(jti), 'seen', jti);
  for (let count = 0; count < 50; count += 1) assert.equal(await users.record(`after ${count}`), 'new');
  return seen;
}

for (const [what, isListed] of [
  ['is killed', () => true],
  ['is killed, the only node that the address lists', (isVictim: boolean) => isVictim],
] as const) {
  test(
    named(`loses nothing when the master of a slot ${what}, in a real cluster of six nodes [J7]`),
    options,
    async (t) => {
      const { nodes, isWhole } = await startRedisCluster(t);
      const slot = slotOf(keyFor('sub', 'good'));
      const victim = nodes[shareOf(slot)]!;
      const listed = nodes.filter((node) => isListed(node === victim));
      const address = `redis-cluster://${listed.map(({ port }) => `127.0.0.1:${port}`).join(',')}`;
      const users = await openUsers(t, address);
      const seen = await survive(users, () => victim.kill(), isWhole);
      assert.deepEqual([...seen].sort(), ['accepted', 'revocation-store-unavailable']);
    },
  );
}

test(named('follows a real cluster when a slot moves to another node'), options, async (t) => {
  const { nodes } = await startRedisCluster(t);
  const users = await openUsers(t, `redis-cluster://127.0.0.1:${nodes[0]!.port}`);
  const slot = slotOf(keyFor('sub', 'good'));
  const index = shareOf(slot);
  const other = nodes[(index + 1) % 3]!;
  const [, id = ''] = await other.ask('CLUSTER MYID');
  assert.equal(await users.verdict(GOOD), 'accepted');
  await other.ask(`CLUSTER SETSLOT ${slot} NODE ${id}`, 'CLUSTER BUMPEPOCH');
  await nodes[index]!.ask(`CLUSTER SETSLOT ${slot} NODE ${id}`);
  for (let count = 0; count < 20; count += 1) assert.equal(await users.verdict(GOOD), 'accepted');
});

test(
  named('answers for tokens of several keys while a slot of a real cluster moves, as in a reshard [§24]'),
  options,
  async (t) => {
    const { nodes } = await startRedisCluster(t);
    const users = await openUsers(t, `redis-cluster://127.0.0.1:${nodes[0]!.port}`);
    const slot = slotOf(keyFor('sub', 'good'));
    const index = shareOf(slot);
    const source = nodes[index]!;
    const target = nodes[(index + 1) % 3]!;
    const [, from = ''] = await source.ask('CLUSTER MYID');
    const [, to = ''] = await target.ask('CLUSTER MYID');
    await source.ask(`SET ${keyFor('jti', 'good')} 1`);
    assert.equal(await users.verdict(GOOD), 'revoked');

    await target.ask(`CLUSTER SETSLOT ${slot} IMPORTING ${from}`);
    await source.ask(`CLUSTER SETSLOT ${slot} MIGRATING ${to}`);
    // Of its two keys, the source has one.
    assert.equal(await users.verdict(GOOD), 'revoked');
    await source.ask(`MIGRATE 127.0.0.1 ${target.port} ${keyFor('jti', 'good')} 0 5000`);
    // The target has it.
    assert.equal(await users.verdict(GOOD), 'revoked');
    await target.ask('ASKING', `DEL ${keyFor('jti', 'good')}`);
    // No node has either.
    assert.equal(await users.verdict(GOOD), 'accepted');
    await users.revoke();
    assert.equal(await users.verdict(REVOKED), 'revoked');
    assert.equal(users.isUp(), true);

    await target.ask(`CLUSTER SETSLOT ${slot} NODE ${to}`, 'CLUSTER BUMPEPOCH');
    await source.ask(`CLUSTER SETSLOT ${slot} NODE ${to}`);
    assert.equal(await users.verdict(GOOD), 'accepted');
    assert.equal(await users.verdict(REVOKED), 'revoked');
  },
);

test(named('follows a real failover by sentinels [J7]'), options, async (t) => {
  const { master, sentinels, hasFailedOver } = await startWatchedRedis(t);
  const hosts = sentinels.map((port) => `127.0.0.1:${port}`).join(',');
  const users = await openUsers(t, `redis-sentinel://${hosts}?master=main`);
  const seen = await survive(users, () => master.kill(), hasFailedOver);
  assert.deepEqual([...seen].sort(), ['accepted', 'revocation-store-unavailable']);
});

test(
  named('asks no master that hung, was replaced and came back, though nothing was asked meanwhile [J7]'),
  options,
  async (t) => {
    const { master, sentinels, hasFailedOver } = await startWatchedRedis(t);
    const hosts = sentinels.map((port) => `127.0.0.1:${port}`).join(',');
    const address = `redis-sentinel://${hosts}?master=main`;
    const idle = await openUsers(t, address);
    master.signal('SIGSTOP');
    await until('the failover is over', hasFailedOver, PATIENCE_SECONDS);
    const busy = await openUsers(t, address);
    await busy.revoke();
    for (let count = 0; count < 50; count += 1) assert.equal(await busy.record(`proof ${count}`), 'new');
    // The documented time.
    await pass(4_000);
    master.signal('SIGCONT');
    for (let count = 0; count < 50; count += 1) assert.equal(await idle.record(`proof ${count}`), 'seen');
    assert.equal(await idle.verdict(REVOKED), 'revoked');
  },
);
