/* The files of the image's last stage in a folder, and a way to run them there as a container engine would: its
   own processes, a root that nothing can be written to, and a user without a capability. Linux allows this to
   any user, with user namespaces. The layers of a base image are not included. */
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { commandOf, healthCheckOf, readDockerfile, wordsOf } from '../../support/dockerfile.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const NODE = fileURLToPath(new URL('../node_modules/node24/bin/node', import.meta.url));
/** Where the default base has it. */
const NODE_IN_IMAGE = '/nodejs/bin/node';

const [, running = []] = readDockerfile().stages;

const [[home = '/'] = []] = wordsOf(running, 'WORKDIR');
const [[user = ''] = []] = wordsOf(running, 'USER');

export const [USER = '', GROUP = ''] = user.split(':');

/** What the image sets. */
export const ENVIRONMENT: Readonly<Record<string, string>> = Object.fromEntries(
  wordsOf(running, 'ENV').map(([setting = '']) => setting.split('=') as [string, string]),
);

export const START = [...wordsOf(running, 'ENTRYPOINT'), ...wordsOf(running, 'CMD')].flatMap(commandOf);
export const HEALTH_CHECK = healthCheckOf(running).command;

export interface Root {
  readonly folder: string;
  /** The folder of all that was copied from the project, at the image's path. */
  readonly home: string;
  /** The shared libraries that Node loads. */
  readonly libraries: readonly string[];
}

/** Why the image's files cannot be run here. */
export function missing(): string | undefined {
  const words = ['--user', '--map-root-user', '--mount', '--pid', '--fork', 'true'];
  const { status } = spawnSync('unshare', words, { stdio: 'ignore' });
  return status === 0 ? undefined : 'needs Linux with unshare (util-linux 2.38) and namespaces for any user';
}

const place = (from: string, folder: string, to: string) => {
  mkdirSync(join(folder, dirname(to)), { recursive: true });
  cpSync(from, join(folder, to), { dereference: true, recursive: true });
};

export function makeRoot(): Root {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-image-'));
  chmodSync(folder, 0o755);
  for (const name of ['proc', 'tmp', 'etc']) mkdirSync(join(folder, name));
  // As every engine does.
  place('/etc/hosts', folder, '/etc/hosts');

  place(NODE, folder, NODE_IN_IMAGE);
  const found = execFileSync('ldd', [NODE], { encoding: 'utf8' }).matchAll(/(\/\S+) \(0x/g);
  const libraries = [...found].map(([, path = '']) => path);
  for (const path of libraries) place(path, folder, path);

  for (const [, from = '', to = ''] of wordsOf(running, 'COPY')) {
    place(join(ROOT, from.replace('/build/', '')), folder, join(home, to));
  }
  return { folder, home: join(folder, home), libraries };
}

/** Words before the command of the image: process 1, the user, and a root that is read only. */
export function contained({ folder }: Root): string[] {
  const mounts = [
    `mount --bind "$0" "$0"`,
    `mount -t proc proc "$0/proc"`,
    `mount -o remount,bind,ro "$0"`,
    `exec unshare --user --map-user=${USER} --map-group=${GROUP} --root="$0" --wd=${home} -- "$@"`,
  ];
  const outside = ['--user', '--map-root-user', '--mount', '--pid', '--fork', '--kill-child'];
  return ['setpriv', '--no-new-privs', 'unshare', ...outside, '/bin/sh', '-ec', mounts.join('\n'), folder];
}

/** Bytes and number of the files below a folder. */
export function sizeOf(folder: string): { readonly files: number; readonly bytes: number } {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const files = names.map((name) => statSync(join(folder, name))).filter((found) => found.isFile());
  return { files: files.length, bytes: files.reduce((sum, { size }) => sum + size, 0) };
}
