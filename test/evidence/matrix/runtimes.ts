/* Uses the package on Bun and Deno as a project there would: use.mjs, and the service as a process. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startProvider } from '../../idp/provider.ts';
import { installInto, packInto } from '../../support/packed.ts';
import { providerSettings, startProcess } from '../../support/process.ts';

/** The command that runs a file, by the package of the program. */
export const RUNTIMES: Readonly<Record<string, readonly string[]>> = {
  bun: ['run'],
  // The last one is for the authorities of `https`.
  deno: ['run', '--no-prompt', '--allow-net', '--allow-env', '--allow-read', '--allow-sys=ca'],
};

const USE = fileURLToPath(new URL('use.mjs', import.meta.url));
const MOST_MILLIS = 60_000;

export interface Used {
  readonly version: string;
  readonly responses: number;
  readonly problems: readonly string[];
}

/** What use.mjs says. */
function use([program = '', ...words]: readonly string[], directory: string): Omit<Used, 'version'> {
  const { status, stdout, stderr } = spawnSync(program, [...words, join(directory, 'use.mjs')], {
    cwd: directory,
    encoding: 'utf8',
    timeout: MOST_MILLIS,
  });
  const [last = ''] = stdout.trim().split('\n').slice(-1);
  if (!last.startsWith('{')) return { responses: 0, problems: [`use.mjs exits with ${status}: ${stderr}`] };

  const { responses, problems } = JSON.parse(last) as Omit<Used, 'version'>;
  const ends = status === 0 || problems.length > 0;
  return {
    responses,
    problems: ends ? problems : [`use.mjs exits with ${status ?? 'a signal, since it hung'}`],
  };
}

/** Starts the packed service with a provider, sends requests, and ends it. */
async function serve(words: readonly string[], directory: string): Promise<Omit<Used, 'version'>> {
  const provider = await startProvider({ host: '127.0.0.1' });
  const service = await startProcess({
    environment: { ...providerSettings(provider), PROFILE: 'A' },
    program: [...words, join(directory, 'node_modules/gatehouse-http/dist/server.js')],
  });
  // Kills a process that hangs.
  const timer = setTimeout(() => service.child.kill('SIGKILL'), MOST_MILLIS);
  const problems: string[] = [];

  const expect = (what: string, found: unknown, expected: unknown) => {
    if (found !== expected) problems.push(`the process, ${what}: ${found} instead of ${expected}`);
  };

  try {
    await service.logged('signing keys loaded');
    const token = provider.issue();
    expect('a token', (await service.ask('/api/private', { token })).status, 200);
    expect('no token', (await service.ask('/api/private')).status, 401);
    expect('readiness', (await service.ask('/readyz')).status, 200);
    service.child.kill('SIGTERM');
    expect('its exit code', await service.exited, 0);
    expect('its end', (await service.logged('stopped')).reason, 'drained');
  } catch (failure) {
    problems.push(`the process: ${failure} ${service.errors()}`);
  } finally {
    clearTimeout(timer);
    await service.stop();
    await provider.stop();
  }
  return { responses: 3, problems };
}

/** `name` is that of a runtime here. */
export async function useOn(name: string): Promise<Used> {
  const program = fileURLToPath(new URL(`../node_modules/.bin/${name}`, import.meta.url));
  const directory = realpathSync(mkdtempSync(join(tmpdir(), `gatehouse-${name}-`)));
  try {
    installInto(directory, packInto(directory));
    cpSync(USE, join(directory, 'use.mjs'));
    const words = [program, ...(RUNTIMES[name] ?? [])];
    const version = spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout.split('\n')[0] ?? '';
    const parts = [use(words, directory), await serve(words, directory)];
    return {
      version: `${name} ${version.replace(`${name} `, '')}`,
      responses: parts.reduce((sum, { responses }) => sum + responses, 0),
      problems: parts.flatMap(({ problems }) => problems),
    };
  } finally {
    rmSync(directory, { recursive: true });
  }
}
