/* Takes two copies of what is committed, in two folders, and packs each on another line of Node, with another
   umask, time zone and locale. Then compares the tarballs, and the files of the image, byte for byte; if they
   differ, names the first file and byte, and exits with 1. `npm run evidence reproducible -- FILE.tgz` also
   compares a tarball that was packed elsewhere.

   Shows: whether tarballs and image files from different folders and versions of Node are identical (or that a
   tarball equals a published one).
   Takes: 10 s.
   Needs: packages, git. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readDockerfile, wordsOf } from '../../support/dockerfile.ts';
import { firstDifference, tarballDifference, type Files } from './compare.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const { npm_execpath: NPM = '' } = process.env;

interface Way {
  readonly node: string;
  readonly folder: string;
  readonly umask: number;
  readonly environment: Readonly<Record<string, string>>;
}

const WAYS: Readonly<Record<'first' | 'second', Way>> = {
  first: { node: 'node20', folder: 'one', umask: 0o022, environment: { TZ: 'UTC', LC_ALL: 'C' } },
  second: {
    node: 'node24',
    folder: 'another folder/of it',
    umask: 0o077,
    environment: { TZ: 'Pacific/Auckland', LC_ALL: 'tr_TR.UTF-8' },
  },
};

interface Built {
  readonly version: string;
  readonly name: string;
  readonly tarball: Uint8Array;
  readonly image: Files;
}

/** The files that the image copies from its builder. */
function imageOf(copy: string): Files {
  const [, running = []] = readDockerfile().stages;
  const copied = wordsOf(running, 'COPY').map(([, from = '']) => join(copy, from.replace('/build/', '')));
  const names = copied.flatMap((path) => {
    if (statSync(path).isFile()) return [path];
    return readdirSync(path, { recursive: true, encoding: 'utf8' }).map((name) => join(path, name));
  });
  const files = names.filter((name) => statSync(name).isFile()).sort();
  return new Map(files.map((name) => [relative(copy, name), readFileSync(name)]));
}

function build(directory: string, { node, folder, umask, environment }: Way): Built {
  const copy = join(directory, folder);
  const bin = fileURLToPath(new URL(`../node_modules/${node}/bin`, import.meta.url));
  const before = process.umask(umask);
  mkdirSync(copy, { recursive: true });
  const committed = execFileSync('git', ['archive', 'HEAD'], { cwd: ROOT, maxBuffer: 2 ** 30 });
  execFileSync('tar', ['x', '-C', copy], { input: committed });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  const env = { ...process.env, ...environment, PATH: `${bin}:${process.env.PATH}` };

  const run = (...words: readonly string[]) =>
    execFileSync(join(bin, 'node'), words, {
      cwd: copy,
      env,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    });

  run(NPM, 'pack', '--silent');
  // What was packed names no source map; the image has what the builder builds.
  run(NPM, 'run', '--silent', 'build');
  process.umask(before);
  const name = readdirSync(copy).find((file) => file.endsWith('.tgz')) ?? '';
  return {
    version: run('--version').trim(),
    name,
    tarball: readFileSync(join(copy, name)),
    image: imageOf(copy),
  };
}

let isGood = true;

/** Prints what is the same, or the first difference. */
function tell(what: string, difference: string | undefined): void {
  console.log(difference === undefined ? `${what}: the same bytes` : `${what}: ${difference}`);
  isGood &&= difference === undefined;
}

const given = process.argv.slice(2);

const missing = given.filter((file) => !existsSync(file));

if (missing.length > 0) {
  console.error(`there is no such file: ${missing.join(', ')}`);
  process.exit(1);
}

const changed = execFileSync('git', ['status', '--porcelain'], { cwd: ROOT, encoding: 'utf8' });
if (changed !== '') console.log('what is not committed is left out');

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-reproducible-'));

try {
  const one = build(directory, WAYS.first);
  const other = build(directory, WAYS.second);
  const versions = `Node ${one.version} and ${other.version}`;
  tell(`${one.name}, packed on ${versions}`, tarballDifference(one.tarball, other.tarball));
  tell(`the ${one.image.size} files of the image`, firstDifference(one.image, other.image));

  for (const file of given) {
    tell(file, tarballDifference(one.tarball, readFileSync(resolve(file))));
  }
  console.log(`${one.tarball.length / 1000} kB`);
  console.log(`sha512-${createHash('sha512').update(one.tarball).digest('base64')}`);
} finally {
  rmSync(directory, { recursive: true });
}

process.exitCode = isGood ? 0 : 1;
