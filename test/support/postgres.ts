/* A real PostgreSQL for evidence: on a free loopback port, with a directory of its own. */
import assert from 'node:assert/strict';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './free-port.ts';
import { until } from './watch.ts';

const PATIENCE_SECONDS = 30;

export interface Postgres {
  readonly url: string;
  /** Runs a statement, and returns its rows as `psql` prints them, columns separated by `|`. */
  ask(statement: string): readonly string[];
  /** Starts it again on the same port and with its data. Resolves when it accepts connections. */
  start(): Promise<void>;
  /** Ends every session, and the process. */
  halt(): Promise<void>;
  signal(name: 'SIGSTOP' | 'SIGCONT'): void;
  /** Ends it and removes its data. */
  stop(): Promise<void>;
}

/** PostgreSQL refuses to run as the administrator. */
function unprivileged() {
  if (process.getuid?.() !== 0) return {};

  const [, , uid, gid] = spawnSync('getent', ['passwd', 'postgres'], { encoding: 'utf8' }).stdout.split(':');
  return { uid: Number(uid), gid: Number(gid) };
}

function programsOfPostgres() {
  const [version = ''] = readdirSync('/usr/lib/postgresql').toSorted().toReversed();
  return `/usr/lib/postgresql/${version}/bin`;
}

/** Starts a database. */
export async function startPostgres(): Promise<Postgres> {
  const user = unprivileged();
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-postgres-'));
  if (user.uid !== undefined) chownSync(directory, user.uid, user.gid);
  const programs = programsOfPostgres();
  const data = join(directory, 'data');
  const made = spawnSync(`${programs}/initdb`, ['-D', data, '-U', 'gatehouse', '-A', 'trust'], {
    ...user,
    cwd: directory,
    encoding: 'utf8',
  });
  assert.equal(made.status, 0, made.stderr);

  const port = await freePort();
  const url = `postgres://gatehouse@127.0.0.1:${port}/postgres`;
  let child: ChildProcess | undefined;

  const run = (statement: string) =>
    spawnSync('psql', [url, '-X', '-q', '-t', '-A', '-c', statement], { encoding: 'utf8' });

  function ask(statement: string) {
    const { status, stdout, stderr } = run(statement);
    assert.equal(status, 0, stderr);
    return stdout.split('\n').filter((line) => line !== '');
  }

  async function start() {
    const words = ['-D', data, '-p', String(port), '-h', '127.0.0.1', '-k', directory];
    child = spawn(`${programs}/postgres`, words, { ...user, cwd: directory, stdio: 'ignore' });
    await until('PostgreSQL is there', () => run('SELECT 1').status === 0, PATIENCE_SECONDS);
  }

  async function halt() {
    const ending = child;
    child = undefined;
    if (ending === undefined) return;

    ending.kill('SIGCONT');
    ending.kill('SIGINT');
    await once(ending, 'exit');
  }

  const stop = async () => {
    await halt();
    rmSync(directory, { recursive: true, force: true });
  };

  await start();
  return { url, ask, start, halt, signal: (name) => void child?.kill(name), stop };
}
