/* Starts servers and load generators, on separate cores if the machine allows. */
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Provider } from '../../idp/provider.ts';
import { ask, type Response } from '../../support/client.ts';
import { freePort } from '../../support/free-port.ts';
import { binaryOf, NODE_LINES } from '../../support/node-lines.ts';
import { isOurs, type ServerPlan } from './plan.ts';
import { AUDIENCE, ISSUER } from './pools.ts';

const hasTool = (name: string, ...options: string[]): boolean =>
  spawnSync(name, options, { stdio: 'ignore' }).error === undefined;

/** The server has the first core, everything else the second. */
const canPin = availableParallelism() > 1 && spawnSync('taskset', ['-c', '0,1', 'true']).status === 0;
export const hasWrk = process.env.BENCH_LOAD !== 'node' && hasTool('wrk', '--version');

/** Keeps this process, and the provider in it, off the server's core from now on. */
export const leaveServerCore = (): void => {
  if (canPin) spawnSync('taskset', ['-a', '-c', '-p', '1', String(process.pid)]);
};

function serversNode(): string {
  const { BENCH_NODE: line = '' } = process.env;
  if (line === '') return process.execPath;
  if (!NODE_LINES.map(String).includes(line)) {
    throw new Error(`BENCH_NODE: choose from ${NODE_LINES.join(', ')}`);
  }
  return binaryOf(Number(line));
}

/** Runs the servers. */
const NODE = serversNode();

export const machine = {
  processor: cpus()[0]?.model ?? 'unknown',
  cores: cpus().length,
  node: execFileSync(NODE, ['--version'], { encoding: 'utf8' }).trim(),
  system: `${process.platform} ${process.arch}`,
  pinned: canPin ? 'server on core 0, load on core 1' : 'no',
  load: hasWrk ? 'wrk, and our own where wrk cannot' : 'our own',
};

const children = new Set<ChildProcess>();

// Whatever ends the benchmark also ends its servers.
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

export function spawnOn(
  core: 'server' | 'load',
  command: readonly string[],
  environment: NodeJS.ProcessEnv,
  cwd = tmpdir(),
): ChildProcess {
  const pinned = ['taskset', '-c', core === 'server' ? '0' : '1', ...command];
  const [program, ...options] = canPin ? pinned : command;
  const stdout = core === 'server' ? 'ignore' : 'pipe';
  const env = { PATH: process.env.PATH, ...environment };
  const child = spawn(program!, options, { cwd, env, stdio: ['ignore', stdout, 'inherit'] });
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

/** Runs a generator to its end and resolves with its output. */
export async function outputOf(
  command: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<string> {
  const child = spawnOn('load', command, environment);
  let output = '';
  child.stdout!.on('data', (chunk) => {
    output += chunk;
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${command.slice(0, 2).join(' ')} ended with ${code}`);
  return output;
}

export interface RunningServer {
  readonly name: string;
  readonly port: number;
  /**
   * Polls the server until its first response; resolves with it and the milliseconds since the start of the
   * process.
   */
  firstResponse(path: string, token?: string): Promise<{ response: Response; millis: number }>;
  /** Resident memory in MiB. */
  residentMebibytes(): number;
  /** The processor time of all its threads so far, in microseconds; `NaN` if unknown. */
  processorMicros(): number;
  /** Ends it at once, or with the signal that lets it write its output. */
  stop(signal?: 'SIGTERM'): Promise<void>;
}

/** The environment of a server: settings for gatehouse, the names of `servers/environment.mjs` for others. */
function environmentOf(plan: ServerPlan, provider: Provider, port: number): NodeJS.ProcessEnv {
  const jwksUri = `${provider.issuer}.well-known/jwks.json`;
  const own = isOurs(plan)
    ? {
        IDP_DOMAIN: provider.domain,
        IDP_AUDIENCE: AUDIENCE,
        IDP_ISSUER: ISSUER,
        IDP_JWKS_URI: jwksUri,
        HOST: '127.0.0.1',
      }
    : { ISSUER, AUDIENCE, JWKS_URI: jwksUri };
  return {
    NODE_ENV: 'production',
    NODE_EXTRA_CA_CERTS: provider.authorityFile,
    PORT: String(port),
    ...own,
    ...plan.environment,
  };
}

/** Linux counts the nanoseconds of each thread; a server's threads live as long as it does. */
function processorMicrosOf(pid: number): number {
  const tasks = `/proc/${pid}/task`;
  if (!existsSync(`${tasks}/${pid}/schedstat`)) return NaN;

  const nanos = readdirSync(tasks).map((task) => {
    const [time] = readFileSync(`${tasks}/${task}/schedstat`, 'utf8').split(' ');
    return Number(time);
  });
  return nanos.reduce((sum, time) => sum + time, 0) / 1_000;
}

/** Starts a server. `more` adds to its environment; `undefined` removes a variable. */
export async function startServer(
  plan: ServerPlan,
  provider: Provider,
  more: NodeJS.ProcessEnv = {},
): Promise<RunningServer> {
  const port = await freePort();
  const cwd = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
  const file = fileURLToPath(new URL(plan.file, import.meta.url));
  const startedAt = performance.now();
  const child = spawnOn('server', [NODE, file], { ...environmentOf(plan, provider, port), ...more }, cwd);
  const exited = once(child, 'exit');

  const firstResponse = async (path: string, token?: string) => {
    for (;;) {
      if (child.exitCode !== null) throw new Error(`${plan.name} exited with ${child.exitCode}`);
      const response = await ask(port, path, token === undefined ? {} : { token }).catch(
        (error: NodeJS.ErrnoException) => {
          if (error.code !== 'ECONNREFUSED') throw error;
        },
      );
      if (response !== undefined) return { response, millis: performance.now() - startedAt };
      await delay(1);
    }
  };

  const stop = async (signal: NodeJS.Signals = 'SIGKILL') => {
    child.kill(signal);
    await exited;
    rmSync(cwd, { recursive: true });
  };

  const residentMebibytes = () =>
    Number(execFileSync('ps', ['-o', 'rss=', '-p', String(child.pid)], { encoding: 'utf8' })) / 1024;

  const processorMicros = () => processorMicrosOf(child.pid ?? 0);

  return { name: plan.name, port, firstResponse, residentMebibytes, processorMicros, stop };
}
