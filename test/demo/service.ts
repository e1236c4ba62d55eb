/*
 * Runs the built service for the demo: in a working directory and an environment of its own, so that no .env,
 * application.yml or variable of the developer's plays a part. Whatever ends the demo ends it and removes the
 * directory.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const SERVER = fileURLToPath(new URL('../../dist/server.js', import.meta.url));

/** The service promises to be gone ten seconds after a signal. */
const STOP_MILLIS = 12_000;
/** Its exit code when it cannot listen. */
const PORT_TAKEN = 2;

/** One line of its log. */
export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface RunningService {
  readonly processId: number | undefined;
  /** Where it listens; `undefined` when it ended before it held the signing keys. */
  readonly port: number | undefined;
  /** Its exit code, or the signal that killed it, once it is gone. */
  readonly exited: Promise<number | string>;
}

export type Environment = Readonly<Record<string, string>>;
export type Log = (line: LogLine) => void;

/**
 * Starts the service on its port. If that is taken, starts it with the environment of `elsewhere`: by default
 * on a free port. Resolves when it is ready or gone.
 */
export async function startService(
  environment: Environment,
  ending: AbortSignal,
  log: Log,
  elsewhere = async (): Promise<Environment> => ({ ...environment, PORT: '0' }),
): Promise<RunningService> {
  const service = await launch(environment, ending, log);
  const isTaken = service.port === undefined && !ending.aborted && (await service.exited) === PORT_TAKEN;
  return isTaken ? launch(await elsewhere(), ending, log) : service;
}

async function launch(environment: Environment, ending: AbortSignal, log: Log): Promise<RunningService> {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-demo-'));
  const child = spawn(process.execPath, [SERVER], {
    cwd: directory,
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
    // A group of its own: Ctrl-C reaches the whole group of the demo, and a second signal would cut the
    // orderly end short.
    detached: true,
    signal: ending,
  });

  const release = () => {
    child.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  };

  process.once('exit', release);
  // Aborting shows as an error too; what matters is that the process is gone.
  child.on('error', () => {});
  ending.addEventListener('abort', () => void setTimeout(() => child.kill('SIGKILL'), STOP_MILLIS).unref());

  const exited = new Promise<number | string>((resolve) => {
    child.once('close', (code, signal) => {
      process.off('exit', release);
      release();
      resolve(code ?? signal ?? 'unknown');
    });
  });
  const ready = new Promise<number>((resolve) => {
    let port = 0;
    createInterface(child.stdout).on('line', (text) => {
      const line = parseLine(text);
      if (line.message === 'listening') port = Number(line.fields.port);
      if (line.message === 'signing keys loaded') resolve(port);
      log(line);
    });
  });
  return { processId: child.pid, port: await Promise.race([ready, exited.then(() => undefined)]), exited };
}

/** A line that is no JSON object, such as a developer's own print, is shown as it is. */
function parseLine(text: string): LogLine {
  try {
    const { time: _, level, message, ...fields } = JSON.parse(text);
    return { level, message, fields };
  } catch (failure) {
    if (!(failure instanceof SyntaxError)) throw failure;
    return { level: 'print', message: text, fields: {} };
  }
}
