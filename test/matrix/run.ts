/* Runs the tests, and the built service under the permission model, on every line of Node on which gatehouse claims to run. */
import { execFileSync, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { delimiter, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { askUnderPermission } from './permission.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const LINES = [20, 22, 24, 26];

/** The binary of a line: that of this process if it is the one, else that of the package. */
const binaryOf = (line: number) => (process.version.startsWith(`v${line}.`)
  ? process.execPath : fileURLToPath(new URL(`node_modules/node${line}/bin/node`, import.meta.url)));

interface Figures {
  readonly tests: number; readonly passed: number; readonly failed: number; readonly seconds: number; readonly failures: readonly string[];
}

/** Runs every test, without measuring coverage. */
async function runTests(binary: string): Promise<Figures> {
  const files = execFileSync('sh', ['-c', 'ls test/*.test.ts test/*/*.test.ts'], { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');
  const env = {
    ...process.env, PATH: `${dirname(binary)}${delimiter}${process.env.PATH ?? ''}`, NODE_EXTRA_CA_CERTS: `${ROOT}test/idp/tls/authority.pem`,
  };
  const tests = ['--import', 'tsx', '--test', '--test-reporter=tap', ...files];
  const child = spawn(binary, tests, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'inherit'] });
  const [figures, failures] = [new Map<string, number>(), [] as string[]];
  for await (const line of createInterface(child.stdout)) {
    const [, name = '', figure] = /^# (tests|pass|fail|cancelled|skipped|todo|duration_ms) ([\d.]+)$/.exec(line) ?? [];
    if (figure !== undefined) figures.set(name, Number(figure));
    const failed = /^ *not ok \d+ - (.*)$/.exec(line)?.[1];
    if (failed !== undefined) failures.push(failed);
  }
  const of = (name: string) => figures.get(name) ?? 0;
  const failed = of('tests') - of('pass');
  return { tests: of('tests'), passed: of('pass'), failed: of('tests') === 0 ? 1 : failed, seconds: Math.round(of('duration_ms') / 1000), failures };
}

let isGood = true;
const asked = process.argv.slice(2).map(Number);
for (const line of LINES.filter((one) => asked.length === 0 || asked.includes(one))) {
  const binary = binaryOf(line);
  const version = execFileSync(binary, ['--version'], { encoding: 'utf8' }).trim();
  const { flags, problems, requests } = await askUnderPermission(binary);
  console.log(`${version}: ${requests} requests under ${flags.join(' ')}: ${problems.length === 0 ? 'as expected' : 'NOT as expected'}`);
  for (const problem of problems) console.log(`  ${problem}`);
  const { tests, passed, failed, seconds, failures } = await runTests(binary);
  console.log(`${version}: ${tests} tests, ${passed} passed, ${failed} failed, ${seconds} s`);
  for (const failure of failures) console.log(`  ${failure}`);
  isGood &&= problems.length === 0 && failed === 0;
}
process.exitCode = isGood ? 0 : 1;
