/* Starts the service for tests as the built process that operators run. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Provider } from '../idp/provider.ts';
import { ask, type Response, type Ask } from './client.ts';
import type { Environment } from './settings.ts';

/** The settings that the provider's tokens and keys need. */
export const providerSettings = (provider: Provider): Environment => ({
  IDP_DOMAIN: provider.domain,
  IDP_AUDIENCE: provider.audience,
});

export interface TestProcess {
  readonly child: ChildProcess;
  /** Set once it listens. */
  readonly port: number;
  readonly logs: readonly Record<string, any>[];
  readonly errors: () => string;
  /** Resolves with the first log line, past or future, that has this message, or with the `count`-th. */
  logged(message: string, count?: number): Promise<Record<string, any>>;
  ask(path: string, request?: Ask): Promise<Response>;
  /** Resolves with the exit code. */
  readonly exited: Promise<number | null>;
  /** Kills it if it still runs, and removes its directory. */
  stop(): Promise<void>;
}

export interface OutOfProcess {
  readonly environment?: Environment;
  /** Files for the working directory, by name. */
  readonly files?: Readonly<Record<string, string>>;
  /** A program, with arguments, that runs the command. */
  readonly through?: readonly string[];
  /** The command. Default: the built service with this Node. */
  readonly program?: readonly string[];
  /** Receives each log line and returns whether to keep it in `logs`. Default: keeps every line. */
  readonly keeps?: (line: Record<string, any>) => boolean;
}

const SERVER = fileURLToPath(new URL('../../dist/server.js', import.meta.url));
const AUTHORITY = fileURLToPath(new URL('../idp/tls/authority.pem', import.meta.url));

/** Runs the built service in a new directory. Resolves when it listens or has exited. */
export async function startProcess({
  environment = {},
  files = {},
  through = [],
  program = [process.execPath, SERVER],
  keeps = () => true,
}: OutOfProcess): Promise<TestProcess> {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-'));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(directory, name), content);
  const { PATH = '', SERVICE_COVERAGE } = process.env;
  const coverage = SERVICE_COVERAGE === undefined ? {} : { NODE_V8_COVERAGE: SERVICE_COVERAGE };
  const env = { PATH, ...coverage, NODE_EXTRA_CA_CERTS: AUTHORITY, PORT: '0', ...environment };
  const command = [...through, ...program];
  const child = spawn(command[0]!, command.slice(1), {
    cwd: directory,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });

  const logs: Record<string, any>[] = [];
  const watchers = new Set<() => void>();
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });

  createInterface(child.stdout).on('line', (line) => {
    const entry = JSON.parse(line);
    if (!keeps(entry)) return;
    logs.push(entry);
    for (const watcher of [...watchers]) watcher();
  });

  const exited = once(child, 'close').then(([code]) => code as number | null);

  const logged = (message: string, count = 1) =>
    new Promise<Record<string, any>>((resolve, reject) => {
      const watcher = () => {
        const found = logs.filter((entry) => entry.message === message)[count - 1];
        if (found === undefined) return;
        watchers.delete(watcher);
        resolve(found);
      };

      watchers.add(watcher);
      watcher();
      void exited.then(() => reject(new Error(`exited without logging "${message}": ${errors}`)));
    });

  const port = await Promise.race([
    logged('listening').then(
      (entry) => entry.port as number,
      () => 0,
    ),
    exited.then(() => 0),
  ]);
  return {
    child,
    port,
    logs,
    errors: () => errors,
    logged,
    exited,
    ask: (path, request) => ask(port, path, request),
    stop: async () => {
      child.kill('SIGKILL');
      await exited;
      rmSync(directory, { recursive: true });
    },
  };
}

/** A provider that does not listen. */
export const DOWN: Environment = { IDP_DOMAIN: '127.0.0.1:1', IDP_AUDIENCE: 'https://api.test' };

/** The same for one test, without a provider unless the environment has one. */
export async function runProcess(
  context: TestContext,
  { environment, ...others }: OutOfProcess = {},
): Promise<TestProcess> {
  const service = await startProcess({ environment: { ...DOWN, ...environment }, ...others });
  context.after(() => service.stop());
  return service;
}
