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

/** The environment of a developer who has more than the demo needs, none of which may play a part. */
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
  readonly route: string;
  readonly status: number;
  readonly body: string;
  readonly line: string;
}

/** Every line to paste, with what the lines above and below it announce. */
export function blocksOf(output: string): Printed[] {
  const lines = output.split('\n');
  return lines.flatMap((line, index) => {
    if (!/^(curl|node) /.test(line)) return [];
    const [, route = '', status] = /^([A-Z]+ \/\S*) -> (\d{3}) {2}\S/.exec(lines[index - 1] ?? '') ?? [];
    const [, below, body = ''] = /^# (\d{3}) (\{.*)$/.exec(lines[index + 1] ?? '') ?? [];
    assert.equal(below, status, `heading and answer differ around ${line}`);
    return [{ route, status: Number(status), body, line }];
  });
}

export const run = promisify(execFile);

export async function paste(line: string): Promise<{ status: number; body: string }> {
  const { stdout } = await run('/bin/sh', ['-c', line]);
  const [head = '', body = ''] = stdout.split('\r\n\r\n');
  return { status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]), body };
}

/** The text, cut as the announcement is. */
export const cutLike = (announced: string, text: string) =>
  announced.endsWith(' ...') ? `${text.slice(0, announced.length - 4)} ...` : text;

export const portOf = (output: string, name: string) =>
  Number(new RegExp(`${name} .*127\\.0\\.0\\.1:(\\d+)`).exec(output)?.[1]);

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

/** A listener on the port, unless somebody else has it. */
export async function occupy(port: number): Promise<Server> {
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening').catch((failure) => assert.equal(failure.code, 'EADDRINUSE'));
  return server;
}

/** Ends it as whoever presses Ctrl-C until the prompt is back, with npm passing each on once more. */
export async function interruptUntilGone(demo: Demo): Promise<void> {
  signalGroup(demo, 'SIGINT');
  while (demo.child.exitCode === null && demo.child.signalCode === null) {
    demo.child.kill('SIGINT');
    await new Promise(setImmediate);
  }
}

/** Ended as it should: neither of its processes runs, so nothing listens, and nothing lies about. */
export function assertGone(demo: Demo): void {
  assert.equal(isRunning(demo.child.pid), false);
  assert.equal(isRunning(processIdOf(demo.output())), false);
  assert.deepEqual(demo.directories(), []);
}
