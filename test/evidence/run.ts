/* `npm run evidence NAME`: runs one of the tools that show what tests alone cannot, each a folder beside this
   file with a `run.ts`. Some need packages of others: one private package beside this file has them all. Without
   a name it prints a table of them. What follows the name is passed to the tool. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { EVIDENCE, readTools, tableOfTools } from '../support/evidence.ts';
import { INSTALL } from '../support/private-package.ts';

/** Ends this process with the command's exit code when that is not 0. */
function run(command: string, ...parameters: readonly string[]): void {
  const { status } = spawnSync(command, parameters, { stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}

const [name = '', ...parameters] = process.argv.slice(2);
const tools = readTools();
const tool = tools.find((one) => one.name === name);

if (tool === undefined) {
  if (name !== '') console.error(`there is no evidence called ${name}\n`);
  console.log(tableOfTools(tools));
  process.exit(name === '' ? 0 : 1);
}

const folder = join(EVIDENCE, name);
run('npm', 'run', '--silent', 'build');

if (tool.needsPackages) run('npm', ...INSTALL);

if (existsSync(join(folder, 'tsconfig.json'))) run('npx', 'tsc', '-p', folder);
run(process.execPath, '--expose-gc', '--import', 'tsx', tool.entry, ...parameters);
