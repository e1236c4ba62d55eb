/* Where the programs are: a folder beside the packages of others, in which `gatehouse-http` is what has been built here. The
   compiler checks and makes them, and each runs in a process of its own, whose gate trusts one test issuer. */
import { spawn, spawnSync, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { createTestIssuer } from '../../../src/testing.ts';
import { DOWN, NONCE_SECRET } from './ask.ts';

const HERE = fileURLToPath(new URL('./', import.meta.url));
const ROOT = join(HERE, '../../..');
const MODULES = join(HERE, '../node_modules');

const FLAGS = [
  ...['--ignoreConfig', '--strict', '--noImplicitReturns', '--skipLibCheck', '--experimentalDecorators'],
  ...['--module', 'nodenext', '--target', 'es2023', '--types', 'node'],
];

/** The words that run a file, by the name of what runs it. */
const RUNTIMES: Readonly<Record<string, readonly string[]>> = {
  node: [process.execPath],
  node22: [join(MODULES, 'node22/bin/node')],
  node24: [join(MODULES, 'node24/bin/node')],
  bun: [join(MODULES, '.bin/bun'), 'run'],
  deno: [join(MODULES, '.bin/deno'), 'run', '--no-prompt', '--allow-net', '--allow-env', '--allow-read'],
};

export interface Running {
  readonly url: string;
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  /** What it has written to standard error. */
  readonly errors: () => string;
  /** Ends the process, in whatever state it is. */
  readonly stop: () => Promise<void>;
}

export type Workshop = Awaited<ReturnType<typeof openWorkshop>>;

/** The URL that the process says, once it listens. */
async function urlSaid({ stdout }: ChildProcessByStdio<Writable, Readable, Readable>): Promise<string> {
  for await (const line of createInterface(stdout)) {
    const [, port] = /^(?:.*istening|- Local:).*?(\d+)$/.exec(line.trim()) ?? [];
    if (port !== undefined) return `http://127.0.0.1:${port}`;
  }
  throw new Error('it has ended before it listened');
}

export async function openWorkshop() {
  const issuer = createTestIssuer();
  // What JSON can hold: the programs log nothing.
  const { fetchKeys: _, log: __, ...written } = issuer.options;
  const keys = createServer(async ({ url }, response) => {
    response.end(url === `/${DOWN.name}` ? '' : JSON.stringify(await issuer.options.fetchKeys()));
  }).listen(0, '127.0.0.1');
  await once(keys, 'listening');

  const directory = mkdtempSync(join(HERE, '.programs-'));
  mkdirSync(join(directory, 'node_modules'));
  symlinkSync(ROOT, join(directory, 'node_modules/gatehouse-http'));

  /** Starts a program; `command` is what runs it, with its words. */
  async function start(command: readonly string[], options: object = {}, cwd = directory): Promise<Running> {
    const env = {
      ...process.env,
      NEXT_TELEMETRY_DISABLED: '1',
      KEYS_URL: `http://127.0.0.1:${(keys.address() as AddressInfo).port}`,
      GATE_OPTIONS: JSON.stringify({
        ...written,
        dpopNonceSecret: NONCE_SECRET,
        issuers: { [DOWN.name]: { domain: DOWN.domain, audience: written.audience } },
        ...options,
      }),
    };
    const [program = '', ...words] = command;
    const child = spawn(program, words, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] });
    let errors = '';
    child.stderr.on('data', (text: Buffer) => {
      errors += String(text);
      process.stderr.write(text);
    });

    const stop = async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill();
      await once(child, 'exit');
    };

    try {
      return { url: await urlSaid(child), child, errors: () => errors, stop };
    } catch (error) {
      await stop();
      throw error;
    }
  }

  return {
    issuer,
    directory,
    start,
    /**
     * Makes a folder in which the packages of `modules` have the names that they have elsewhere. Packages look
     * for each other by these names, so they are copied.
     */
    addFolder(name: string, modules: Readonly<Record<string, string>>) {
      for (const [alias, from] of Object.entries(modules)) {
        const to = join(directory, name, 'node_modules', alias);
        cpSync(join(MODULES, from), to, { recursive: true });
      }
    },
    /** Writes programs by their names, and makes JavaScript of them; throws what the compiler says. */
    compile(programs: Readonly<Record<string, string>>) {
      const files = Object.entries(programs).map(([name, text]) => {
        const file = join(directory, name, 'main.mts');
        mkdirSync(join(directory, name), { recursive: true });
        writeFileSync(file, text);
        return file;
      });
      if (files.length === 0) return;

      const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
      const { status, stdout } = spawnSync(process.execPath, [tsc, ...FLAGS, ...files], {
        cwd: directory,
        encoding: 'utf8',
      });
      if (status !== 0) throw new Error(stdout);
    },
    run: (name: string, runtime = 'node', options: object = {}) =>
      start([...(RUNTIMES[runtime] ?? []), join(directory, name, 'main.mjs')], options),
    async close() {
      keys.close();
      keys.closeAllConnections();
      rmSync(directory, { recursive: true });
    },
  };
}
