/* The balancers of test/example as processes on this machine, each with its configuration from there, but in
   front of loopback ports instead of the name of the replicas. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { freePort } from './free-port.ts';

interface Plan {
  readonly port: number;
  readonly ports: readonly number[];
  readonly directory: string;
  readonly file: string;
}

export interface Balancer {
  readonly name: string;
  /** Why it cannot start here; absent if it can. */
  readonly missing: string | undefined;
  /** Starts it in front of these ports and returns its own port. It ends with the test. */
  start(context: TestContext, ports: readonly number[]): Promise<number>;
}

interface Kind {
  readonly name: string;
  readonly file: string;
  /** Adapts its configuration. */
  readonly adapt: (text: string, plan: Plan) => string;
  /** The arguments that make it check its configuration, and those that run it. */
  readonly check: (plan: Plan) => readonly string[];
  readonly run: (plan: Plan) => readonly string[];
  /** Its line on standard error once it has bound its port. */
  readonly saysReady: string;
}

function balancer({ name, file, adapt, check, run, saysReady }: Kind): Balancer {
  const isThere = spawnSync(name, ['-v']).error === undefined;

  async function start(context: TestContext, ports: readonly number[]): Promise<number> {
    const directory = mkdtempSync(join(tmpdir(), `gatehouse-${name}-`));
    const plan = { port: await freePort(), ports, directory, file: join(directory, file) };
    const text = readFileSync(new URL(`../example/${file}`, import.meta.url), 'utf8');
    writeFileSync(plan.file, adapt(text, plan));
    const checked = spawnSync(name, check(plan), { encoding: 'utf8' });
    assert.equal(checked.status, 0, checked.stderr);
    const child = spawn(name, run(plan), { stdio: ['ignore', 'ignore', 'pipe'] });
    context.after(async () => {
      child.kill('SIGTERM');
      await once(child, 'exit');
      rmSync(directory, { recursive: true });
    });

    for await (const line of createInterface(child.stderr)) {
      if (line.includes(saysReady)) break;
    }
    child.stderr.resume();
    return plan.port;
  }

  return { name, missing: isThere ? undefined : `${name} is not installed`, start };
}

/** One line of the example for each port. */
function lineForEach(text: string, line: RegExp, lineOf: (port: number) => string, plan: Plan): string {
  assert.match(text, line);
  return text.replace(line, plan.ports.map(lineOf).join('\n'));
}

const wordsOfNginx = ({ directory, file }: Plan) => ['-p', directory, '-e', 'stderr', '-c', file];

export const NGINX = balancer({
  name: 'nginx',
  file: 'nginx.conf',
  adapt: (text, plan) =>
    lineForEach(text, /server api:3001(.*)/, (port) => `server 127.0.0.1:${port}$1`, plan)
      .replace('error_log stderr;', '')
      .replace('listen 8080;', `listen 127.0.0.1:${plan.port};`)
      .replaceAll('/tmp/', `${plan.directory}/`),
  check: (plan) => [...wordsOfNginx(plan), '-t'],
  // At this level it logs when it has bound its port and starts to work.
  run: (plan) => [...wordsOfNginx(plan), '-g', 'daemon off; error_log stderr notice;'],
  saysReady: 'start worker processes',
});

export const HAPROXY = balancer({
  name: 'haproxy',
  file: 'haproxy.cfg',
  adapt: (text, plan) =>
    lineForEach(text, /server-template .*/, (port) => `  server at${port} 127.0.0.1:${port}`, plan).replace(
      'bind :8080',
      `bind 127.0.0.1:${plan.port}`,
    ),
  check: ({ file }) => ['-c', '-q', '-f', file],
  run: ({ file }) => ['-W', '-db', '-f', file],
  saysReady: 'Loading success',
});
