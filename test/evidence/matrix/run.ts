/* Runs the tests, and the built service under the permission model, on every line of Node on which gatehouse
   claims to run; and puts the package to use on Bun and Deno. Words such as `22 bun` choose some.

   Shows: the tests on Node 20, 22, 24 and 26, and the package on Bun and Deno.
   Takes: 5 min.
   Needs: packages. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { binaryOf, NODE_LINES } from '../../support/node-lines.ts';
import { askUnderPermission } from './permission.ts';
import { describeFigures, runTests } from './run-tests.ts';
import { RUNTIMES, useOn } from './runtimes.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
let isGood = true;
const asked = process.argv.slice(2);

const isAsked = (name: string) => asked.length === 0 || asked.includes(name);

for (const line of NODE_LINES.filter((one) => isAsked(String(one)))) {
  const binary = binaryOf(line);
  const version = execFileSync(binary, ['--version'], { encoding: 'utf8' }).trim();
  const { flags, problems, requests } = await askUnderPermission(binary);
  console.log(
    `${version}: ${requests} requests under ${flags.join(' ')}: ${problems.length === 0 ? 'as expected' : 'NOT as expected'}`,
  );
  for (const problem of problems) console.log(`  ${problem}`);
  const figures = await runTests(binary, ROOT);
  console.log(describeFigures(version, figures));
  isGood &&= problems.length === 0 && figures.failed === 0;
}

for (const name of Object.keys(RUNTIMES).filter(isAsked)) {
  const { version, responses, problems } = await useOn(name);
  console.log(
    `${version}: ${responses} answers, ${problems.length === 0 ? 'as expected' : 'NOT as expected'}`,
  );
  for (const problem of problems) console.log(`  ${problem}`);
  isGood &&= problems.length === 0;
}

process.exitCode = isGood ? 0 : 1;
