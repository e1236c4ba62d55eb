/* Starts the demo as a developer does, reads what it prints, and pastes its lines into a shell. */
import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** The line that the demo prints when all is up. */
export const UP = 'Everything is up. Ctrl-C ends it.';

const ENTRY = fileURLToPath(new URL('demo.ts', import.meta.url));

/** The environment of a developer, with variables that must not affect the demo. */
const DISTRACTIONS = {
  IDP_AUDIENCE: 'https://elsewhere.test',
  PORT: '1',
  LOG_LEVEL: 'silent',
  ERROR_DETAIL: 'true',
};

export interface Demo {
  readonly child: ChildProcess;
  readonly output: () => string;
  readonly errors: () => string;
  /** Resolves when the output, or the output's end, has this text. */
  until(text: string): Promise<void>;
  /** The exit code, or the signal that ended it. */
  readonly exited: Promise<number | string>;
  /** The directories that it has made and not removed. */
  directories(): string[];
  /** Ends what a failed test left running, and removes the directories. */
  end(): Promise<void>;
}

export function startDemo(
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Demo {
  const home = mkdtempSync(join(tmpdir(), 'gatehouse-'));
  const temporary = join(home, 'temporary');
  mkdirSync(temporary);
  writeFileSync(join(home, '.env'), 'IDP_CLAIM_NAMESPACE=not a URL\n');
  writeFileSync(join(home, 'application.yml'), 'idp:\n  unknown: 1\n');
  const env = { PATH: process.env.PATH, TMPDIR: temporary, ...DISTRACTIONS, ...environment };
  const child = spawn(process.execPath, ['--import', import.meta.resolve('tsx'), ENTRY, ...words], {
    cwd: home,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  let errors = '';
  const exited = once(child, 'close').then(([code, signal]): number | string => code ?? signal);
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    errors += text;
  });
  return {
    child,
    exited,
    output: () => output,
    errors: () => errors,
    until: async (text) => {
      while (!output.includes(text)) {
        const ended = await Promise.race([once(child.stdout, 'data').then(() => undefined), exited]);
        assert.equal(ended, undefined, `the demo ended before it printed "${text}": ${errors}`);
      }
    },
    directories: () => readdirSync(temporary).filter((name) => name.startsWith('gatehouse-demo-')),
    end: async () => {
      const service = processIdOf(output);
      if (isRunning(child.pid)) child.kill(Number.isNaN(service) ? 'SIGTERM' : 'SIGKILL');
      // Its service is not in its group.
      if (isRunning(service)) process.kill(service, 'SIGKILL');
      await exited;
      rmSync(home, { recursive: true });
    },
  };
}

export function isRunning(processId: number | undefined): processId is number {
  try {
    return processId !== undefined && !Number.isNaN(processId) && process.kill(processId, 0);
  } catch (failure) {
    assert.equal((failure as NodeJS.ErrnoException).code, 'ESRCH');
    return false;
  }
}

/** What Ctrl-C does: the terminal signals the whole group. */
export const signalGroup = ({ child }: Demo, signal: NodeJS.Signals) =>
  process.kill(-Number(child.pid), signal);

interface Printed {
  readonly command: string;
  /** What the command asks for. */
  readonly path: string;
  readonly status: number;
}

/** Every line to paste, with the status that it announces. */
export const linesOf = (output: string): readonly Printed[] =>
  [...output.matchAll(/^((?:curl|node) .*?) +# (\d{3}) \S.*$/gm)].map(([, command = '', status]) => ({
    command,
    path: /\$(?:API)?(\S+)$/.exec(command)?.[1] ?? '',
    status: Number(status),
  }));

export const run = promisify(execFile);

/** Sources the variables and runs the line, like somebody who pastes both into a shell. */
export async function paste(output: string, line: string): Promise<{ status: number; body: string }> {
  const [source = ''] = /^\. .*$/m.exec(output) ?? [];
  const { stdout } = await run('/bin/sh', ['-c', `${source}\n${line}`]);
  const [head = '', body = ''] = stdout.split('\r\n\r\n');
  return { status: Number(/^HTTP\/1\.1 (\d{3}) /m.exec(head)?.[1]), body };
}

export const portOf = (output: string, name: string) =>
  Number(new RegExp(`${name} \\S*127\\.0\\.0\\.1:(\\d+)`).exec(output)?.[1]);

export const processIdOf = (output: string) => Number(/\(process (\d+)\)/.exec(output)?.[1]);

export async function isOpen(port: number, host = '127.0.0.1'): Promise<boolean> {
  const socket = connect(port, host);
  const opened = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return opened;
}

/** A listener on the port, unless it is taken. */
export async function occupy(port: number): Promise<Server> {
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening').catch((failure) => assert.equal(failure.code, 'EADDRINUSE'));
  return server;
}

/** Sends Ctrl-C until it is gone, as a user would, and each time the second signal that npm sends. */
export async function interruptUntilGone(demo: Demo): Promise<void> {
  signalGroup(demo, 'SIGINT');
  while (demo.child.exitCode === null && demo.child.signalCode === null) {
    demo.child.kill('SIGINT');
    await new Promise(setImmediate);
  }
}

/** Asserts that both of its processes are gone, so nothing listens, and that no directory is left. */
export function assertGone(demo: Demo): void {
  assert.equal(isRunning(demo.child.pid), false);
  assert.equal(isRunning(processIdOf(demo.output())), false);
  assert.deepEqual(demo.directories(), []);
}

/** Where the page is. */
export const webOriginIn = (output: string) =>
  /browser: (http:\/\/127\.0\.0\.1:\d+)\//.exec(output)?.[1] ?? '';
