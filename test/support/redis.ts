/* A real Redis or Valkey for tests: on a free loopback port, with a directory of its own. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './free-port.ts';
import { withReason } from './skipped.ts';

/** Absent if none is installed. */
export const PROGRAM = ['redis-server', 'valkey-server'].find(
  (name) => spawnSync(name, ['--version']).error === undefined,
);

/** Why there is no real store; absent if there is one. */
export const NO_STORE =
  PROGRAM === undefined ? 'neither redis-server nor valkey-server is installed' : undefined;

/** The name of a test that needs a real store, with the reason if it is skipped. */
export const named = (name: string): string => withReason(name, NO_STORE);

export interface Redis {
  readonly port: number;
  /** Of the latest process. */
  pid(): number;
  isAlive(): boolean;
  /**
   * Sends commands as a person would type them, on a new connection. Resolves with the lines of all replies.
   */
  ask(...commands: readonly string[]): Promise<string[]>;
  /** Starts it again after a kill, on the same port and with its data. Resolves when it accepts commands. */
  start(): Promise<void>;
  /** Kills it. With `--appendonly yes --appendfsync always`, confirmed data survives. */
  kill(): Promise<void>;
  signal(name: 'SIGSTOP' | 'SIGCONT'): void;
  /** Ends it and removes its data. */
  stop(): Promise<void>;
}

/** Starts a store. `password` is what `ask` needs; `options` are for its command line. */
export async function startRedis(options: readonly string[] = [], password?: string): Promise<Redis> {
  const port = await freePort();
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-store-'));
  let child: ChildProcess | undefined;

  const ask = (...commands: readonly string[]) =>
    new Promise<string[]>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1');
      let text = '';
      socket.setEncoding('utf8').on('data', (piece) => {
        text += piece;
      });
      socket.setTimeout(5_000, () => socket.destroy(new Error('the store does not answer')));
      socket.on('error', reject).on('close', () => resolve(text.split('\r\n').slice(0, -1)));
      const login = password === undefined ? [] : [`AUTH ${password}`];
      socket.write([...login, ...commands, 'QUIT'].map((command) => `${command}\r\n`).join(''));
    });

  async function start(): Promise<void> {
    const own = ['--port', String(port), '--bind', '127.0.0.1', '--dir', directory, '--save', ''];
    const words = [...own, '--daemonize', 'no', ...options];
    const started = spawn(PROGRAM!, words, { stdio: ['ignore', 'pipe', 'ignore'] });
    child = started;
    await new Promise<void>((resolve, reject) => {
      let said = '';
      // Read to the end, or later output would fill the pipe.
      started.stdout.setEncoding('utf8').on('data', (text: string) => {
        said += text;
        if (said.includes('Ready to accept connections')) resolve();
      });
      started.stdout.on('end', () => reject(new Error(`the store ended: ${said}`)));
    });
  }

  const isAlive = () => child !== undefined && child.exitCode === null && child.signalCode === null;

  async function kill(): Promise<void> {
    if (child === undefined || !isAlive()) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }

  const stop = async () => {
    await kill();
    rmSync(directory, { recursive: true, force: true });
  };

  await start();
  const signal = (name: 'SIGSTOP' | 'SIGCONT') => child?.kill(name);
  return { port, pid: () => child?.pid ?? 0, isAlive, ask, start, kill, signal, stop };
}
