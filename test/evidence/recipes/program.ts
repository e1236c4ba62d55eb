/* A program in a project of its own, which has the package, and the client of PostgreSQL. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Provider } from '../../idp/provider.ts';
import { until } from '../../support/watch.ts';

const PATIENCE_SECONDS = 30;
const PACKAGES = fileURLToPath(new URL('../node_modules', import.meta.url));
const OWN = fileURLToPath(new URL('../../..', import.meta.url));

/** Returns its folder, and the path of the program in it. */
export function makeProject(program: URL) {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-recipe-'));
  const modules = join(directory, 'node_modules');
  mkdirSync(modules);
  symlinkSync(OWN, join(modules, 'gatehouse-http'));
  for (const name of readdirSync(PACKAGES)) symlinkSync(join(PACKAGES, name), join(modules, name));
  const file = join(directory, basename(fileURLToPath(program)));
  copyFileSync(program, file);
  return { directory, file };
}

export interface Program {
  readonly origin: string;
  readonly provider: Provider;
  readonly child: ChildProcess;
  readonly exited: Promise<number | null>;
  remove(): void;
}

/** Resolves when it listens at `PORT`. */
export async function startProgram(
  program: URL,
  provider: Provider,
  environment: Readonly<Record<'PORT', string>> & Readonly<Record<string, string>>,
): Promise<Program> {
  const { directory, file } = makeProject(program);
  const child = spawn(process.execPath, [file], {
    cwd: directory,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      NODE_EXTRA_CA_CERTS: provider.authorityFile,
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      ISSUER: provider.issuer,
      AUDIENCE: provider.audience,
      JWKS_URI: `${provider.issuer}.well-known/jwks.json`,
      IDP_DOMAIN: provider.domain,
      IDP_AUDIENCE: provider.audience,
      ...environment,
    },
  });
  const exited = once(child, 'exit').then(([code]) => code as number | null);

  const isListening = async () => {
    const socket = connect(Number(environment.PORT), '127.0.0.1');
    const opened = once(socket, 'connect').then(
      () => true,
      () => false,
    );
    return opened.finally(() => socket.destroy());
  };

  await until(`${file} listens`, isListening, PATIENCE_SECONDS);
  const remove = () => rmSync(directory, { recursive: true });
  return { origin: `http://127.0.0.1:${environment.PORT}`, provider, child, exited, remove };
}
