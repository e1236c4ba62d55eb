/* Tests the compiled copy: first in the worker, then with the tests that need their own process, until one
   fails or takes too long. */
import { fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Coverage } from './coverage.ts';
import type { Task } from './worker.ts';

const LEAST_LIMIT_MILLIS = 30_000;
const FIRST_LIMIT_MILLIS = 60_000;
/** The number of tests with their own process that have their own limit. */
const REHEARSED = 6;
/** Loaded modules are never freed: a worker ends before there are too many. */
const MOST_TASKS = 150;
const FLAGS = ['--max-old-space-size=1024', '--no-warnings'];

const compiled = (file: string) => file.replace(/\.ts$/, '.js');

export class Trial {
  readonly #directory: string;
  #worker: ChildProcess | undefined;
  #alone: ChildProcess | undefined;
  #tasks = 0;
  /** The failure of the worker's last run. */
  #failure: string | undefined;
  /** The worker's tests have the key '', other files their name. */
  readonly #limits = new Map<string, number>();
  /** The files with their own process that have failed. */
  readonly #killers = new Set<string>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  close(): void {
    this.#endWorker();
    this.#endAlone();
  }

  /** With the services that the test has started, which an interrupted test does not end. */
  #endAlone(): void {
    try {
      if (this.#alone?.pid !== undefined) process.kill(-this.#alone.pid, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
    this.#alone = undefined;
  }

  #endWorker(): void {
    this.#worker?.kill('SIGKILL');
    this.#worker = undefined;
  }

  /** Measures the nearest tests on unchanged code. Throws if they do not pass. */
  async rehearse(file: string, text: string, { together, alone }: Coverage): Promise<void> {
    for (const name of ['', ...alone.slice(0, REHEARSED)]) {
      const begun = performance.now();
      const isGood =
        name === '' ? await this.#passTogether(file, text, together) : await this.#passesAlone(name);
      if (!isGood) throw new Error(`tests fail without any mutation: ${name || this.#failure}`);
      this.#limits.set(name, Math.max(LEAST_LIMIT_MILLIS, Math.ceil(3 * (performance.now() - begun))));
    }
  }

  /** Whether no test distinguishes this text, already in place, from the original. */
  async survives(file: string, text: string, { together, alone }: Coverage): Promise<boolean> {
    if (!(await this.#passTogether(file, text, together))) return false;
    for (const name of alone) {
      if (await this.#passesAlone(name)) continue;
      this.#killers.add(name);
      return false;
    }
    return true;
  }

  /** Throws if tests that have killed mutants also fail on the original text. */
  async review(file: string, text: string, { together }: Coverage): Promise<void> {
    const alone = [...this.#killers];
    this.#killers.clear();
    // A busier machine than in the rehearsal does not invalidate results.
    this.#limits.clear();
    if (await this.survives(file, text, { together, alone })) return;
    throw new Error(`tests fail after the mutants of ${file}: ${[...this.#killers][0] ?? this.#failure}`);
  }

  async #passTogether(file: string, text: string, names: readonly string[]): Promise<boolean> {
    if (names.length === 0) return true;
    this.#tasks += 1;
    if (this.#tasks % MOST_TASKS === 0) this.#endWorker();
    this.#worker ??= fork(join(this.#directory, 'test/evidence/mutants/worker.js'), {
      cwd: this.#directory,
      execArgv: ['--experimental-vm-modules', ...FLAGS],
      env: { PATH: process.env.PATH, TMPDIR: this.#directory },
      serialization: 'json',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    const worker = this.#worker;
    const files = names.map((name) => join(this.#directory, 'test', compiled(name)));
    worker.send({ files, changed: join(this.#directory, 'src', compiled(file)), text } satisfies Task);
    const isPassed = await this.#answer(worker);
    if (isPassed === undefined) this.#endWorker();
    return isPassed ?? false;
  }

  /** The worker's result; `undefined` if it ends or takes too long. */
  #answer(worker: ChildProcess): Promise<boolean | undefined> {
    return new Promise((resolve) => {
      const settle = (response?: boolean) => {
        clearTimeout(timer);
        worker.removeAllListeners();
        resolve(response);
      };

      const timer = setTimeout(settle, this.#limits.get('') ?? FIRST_LIMIT_MILLIS);
      worker
        .once('exit', () => settle())
        .once('error', () => settle())
        .once('message', ({ failure }: { failure?: string }) => {
          this.#failure = failure;
          settle(failure === undefined);
        });
    });
  }

  async #passesAlone(name: string): Promise<boolean> {
    const reporter = join(this.#directory, 'test/evidence/mutants/first-failure.js');
    const flags = [...FLAGS, `--test-reporter=${reporter}`, '--test-reporter-destination=stdout'];
    const child = spawn(process.execPath, [...flags, join(this.#directory, 'test', compiled(name))], {
      cwd: this.#directory,
      stdio: 'ignore',
      detached: true,
      env: {
        PATH: process.env.PATH,
        TMPDIR: this.#directory,
        NODE_EXTRA_CA_CERTS: join(this.#directory, 'test/idp/tls/authority.pem'),
      },
    });
    this.#alone = child;
    const timer = setTimeout(() => this.#endAlone(), this.#limits.get(name) ?? FIRST_LIMIT_MILLIS);
    const [code] = await once(child, 'exit');
    clearTimeout(timer);
    this.#endAlone();
    return code === 0;
  }
}
