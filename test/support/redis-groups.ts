/* Real groups of Redis or Valkey for tests: a cluster of three masters and three replicas, and a master with a
   replica that three sentinels watch. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { freePort } from './free-port.ts';
import { startRedis, PROGRAM, type Redis } from './redis.ts';
import { until } from './watch.ts';

const PATIENCE_SECONDS = 60;

export interface RedisCluster {
  /** Three masters, then the replica of each. */
  readonly nodes: readonly Redis[];
  /** Whether every node that lives sees all slots served. */
  isWhole(): Promise<boolean>;
}

/** It ends with the test. */
export async function startRedisCluster(t: TestContext): Promise<RedisCluster> {
  const nodes: Redis[] = [];
  const busPorts: number[] = [];
  for (let count = 0; count < 6; count += 1) {
    const busPort = await freePort();
    const options = ['--cluster-enabled', 'yes', '--cluster-port', String(busPort)];
    const limits = ['--cluster-node-timeout', '1000', '--cluster-require-full-coverage', 'no'];
    const node = await startRedis([...options, ...limits, '--cluster-replica-validity-factor', '0']);
    t.after(node.stop);
    nodes.push(node);
    busPorts.push(busPort);
  }

  const [first] = nodes;
  for (const [index, { port }] of nodes.entries()) {
    await first!.ask(`CLUSTER MEET 127.0.0.1 ${port} ${busPorts[index]}`);
  }
  for (const [index, [from, to]] of SHARES.entries()) {
    await nodes[index]!.ask(`CLUSTER ADDSLOTSRANGE ${from} ${to}`);
  }
  const knows = async (node: Redis) => infoOf(await node.ask('CLUSTER INFO'), 'cluster_known_nodes') === '6';
  await until('each node knows the others', () => everyOf(nodes, knows), PATIENCE_SECONDS);

  for (const [index, replica] of nodes.slice(3).entries()) {
    const [, id = ''] = await nodes[index]!.ask('CLUSTER MYID');
    const isReplica = async () => (await replica.ask(`CLUSTER REPLICATE ${id}`))[0] === '+OK';
    await until('the replica knows its master', isReplica, PATIENCE_SECONDS);
  }

  const isSynced = async (replica: Redis) =>
    infoOf(await replica.ask('INFO replication'), 'master_link_status') === 'up';

  await until('the replicas are in step', () => everyOf(nodes.slice(3), isSynced), PATIENCE_SECONDS);

  async function isWhole() {
    const living = nodes.filter((node) => node.isAlive());
    return everyOf(living, async (node) => {
      const lines = await node.ask('CLUSTER INFO');
      return infoOf(lines, 'cluster_slots_ok') === '16384' && infoOf(lines, 'cluster_state') === 'ok';
    });
  }

  await until('the cluster is whole', isWhole, PATIENCE_SECONDS);
  return { nodes, isWhole };
}

const SHARES = [
  [0, 5_460],
  [5_461, 10_922],
  [10_923, 16_383],
] as const;

const infoOf = (lines: readonly string[], name: string) =>
  lines.find((line) => line.startsWith(`${name}:`))?.slice(name.length + 1);

async function everyOf(nodes: readonly Redis[], isSo: (node: Redis) => Promise<boolean>) {
  const found = await Promise.all(nodes.map((node) => isSo(node).catch(() => false)));
  return found.every(Boolean);
}

export interface WatchedRedis {
  readonly master: Redis;
  readonly replica: Redis;
  readonly sentinels: readonly number[];
  /** Whether the replica has become the master. */
  hasFailedOver(): Promise<boolean>;
}

/** They end with the test. */
export async function startWatchedRedis(t: TestContext): Promise<WatchedRedis> {
  const master = await startRedis();
  t.after(master.stop);
  const replica = await startRedis(['--replicaof', '127.0.0.1', String(master.port)]);
  t.after(replica.stop);
  const isSynced = async () => infoOf(await replica.ask('INFO replication'), 'master_link_status') === 'up';
  await until('the replica is in step', isSynced, PATIENCE_SECONDS);

  const sentinels = [await freePort(), await freePort(), await freePort()];
  for (const port of sentinels) await startSentinel(t, port, master.port);

  async function hasFailedOver() {
    // A server that changes its role closes its connections.
    const lines = await replica.ask('INFO replication').catch(() => []);
    return infoOf(lines, 'role') === 'master';
  }

  return { master, replica, sentinels, hasFailedOver };
}

async function startSentinel(t: TestContext, port: number, masterPort: number) {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-sentinel-'));
  const file = join(directory, 'sentinel.conf');
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${directory}`,
    `sentinel monitor main 127.0.0.1 ${masterPort} 2`,
    'sentinel down-after-milliseconds main 1000',
    'sentinel failover-timeout main 5000',
  ];
  writeFileSync(file, lines.join('\n'));
  const child = spawn(PROGRAM!, [file, '--sentinel'], { stdio: ['ignore', 'pipe', 'ignore'] });
  t.after(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    rmSync(directory, { recursive: true, force: true });
  });
  await new Promise<void>((resolve) => {
    let said = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (said.includes('+monitor master main')) resolve();
    });
  });
}
