/* Replicas restarted in turn behind a balancer of test/example, under a load of GET and POST. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startProvider } from '../idp/provider.ts';
import type { Balancer } from '../support/balancer.ts';
import { freePort } from '../support/free-port.ts';
import { getBytes, startLoad, type LoadPlan, type Tally } from '../support/load.ts';
import { providerSettings, runProcess } from '../support/process.ts';
import { until } from '../support/watch.ts';

const ORDERS = [process.execPath, fileURLToPath(new URL('orders.mjs', import.meta.url))];

export interface RolloutPlan {
  readonly balancer: Balancer;
  /** SHUTDOWN_DELAY_SECONDS */
  readonly delaySeconds: number;
  readonly rounds: number;
  readonly load: Pick<LoadPlan, 'connections' | 'pauseMillis'>;
}

export interface Rollout {
  readonly tally: Tally;
  /** The numbers of the orders that the replicas have received, repeated ones repeated. */
  readonly taken: readonly string[];
  /** For each replica that ended. */
  readonly codes: readonly (number | null)[];
}

/** Every other request is an order with its own number. */
function shots() {
  let count = 0;
  return () => {
    count += 1;
    if (count % 2 === 0) return { kind: 'GET', bytes: getBytes('/orders') };
    const body = JSON.stringify({ id: count });
    const fields = `Host: api.test\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
    return { kind: 'POST', bytes: `POST /orders HTTP/1.1\r\n${fields}\r\n\r\n${body}` };
  };
}

/** Restarts three replicas in turn, this many times. */
export async function rollOut(t: TestContext, plan: RolloutPlan): Promise<Rollout> {
  const { balancer, delaySeconds, rounds } = plan;
  const provider = await startProvider({ host: '127.0.0.1' });
  t.after(() => provider.stop());
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-rollout-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const ledger = join(directory, 'ledger');

  const start = async (port: number) => {
    const own = { PORT: String(port), SHUTDOWN_DELAY_SECONDS: String(delaySeconds), LEDGER: ledger };
    const replica = await runProcess(t, {
      program: ORDERS,
      environment: { ...providerSettings(provider), ...own },
    });
    await replica.logged('signing keys loaded');
    return replica;
  };

  const ports = [await freePort(), await freePort(), await freePort()];
  const replicas = await Promise.all(ports.map(start));
  const port = await balancer.start(t, ports);
  const load = startLoad({ ...plan.load, port, next: shots() });
  const codes: (number | null)[] = [];
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, replica] of [...replicas.entries()]) {
      const { answered } = load.tally;
      await until('the load is running', () => load.tally.answered > answered + 100, 20);
      replica.child.kill('SIGTERM');
      codes.push(await replica.exited);
      replicas[index] = await start(replica.port);
    }
  }

  const tally = await load.stop();
  return { tally, taken: readFileSync(ledger, 'utf8').trim().split('\n'), codes };
}
