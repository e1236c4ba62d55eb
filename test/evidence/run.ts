/* `npm run evidence NAME`: runs one of the tools that show what tests alone cannot, each a folder beside this
   file with a `run.ts`. Some need packages of others: one private package beside this file has them all. Without
   a name it lists them. What follows the name is the tool's. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { INSTALL } from '../support/private-package.ts';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const WITH_PACKAGES = ['bench', 'clients', 'fuzz', 'matrix', 'package', 'schemas', 'servers'];

const entryOf = (name: string) => join(HERE, name, 'run.ts');

/** What the tool does, in the words of the comment that it opens with. */
function purposeOf(name: string): string {
  const [, comment = ''] = /^\/\*([^]*?)\*\//.exec(readFileSync(entryOf(name), 'utf8')) ?? [];
  return comment.replaceAll(/\s*\n[ *]*/g, ' ').trim();
}

/** Ends this process with the command's exit code when that is not 0. */
function run(command: string, ...parameters: readonly string[]): void {
  const { status } = spawnSync(command, parameters, { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}

const [name = '', ...parameters] = process.argv.slice(2);
const tools = readdirSync(HERE).filter((folder) => existsSync(entryOf(folder)));

if (!tools.includes(name)) {
  for (const tool of tools) console.log(`${tool}: ${purposeOf(tool)}\n`);
  process.exit(name === '' ? 0 : 1);
}

const folder = join(HERE, name);
run('npm', 'run', '--silent', 'build');

if (WITH_PACKAGES.includes(name)) run('npm', ...INSTALL);

if (existsSync(join(folder, 'tsconfig.json'))) run('npx', 'tsc', '-p', folder);
run(process.execPath, '--expose-gc', '--import', 'tsx', entryOf(name), ...parameters);
