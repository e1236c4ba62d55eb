/* Every test of a tree, run with a binary of Node and counted, without measuring coverage. */
import { execFileSync, spawn } from 'node:child_process';
import { dirname, delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';

export interface Figures {
  readonly tests: number;
  readonly passed: number;
  readonly failed: number;
  readonly seconds: number;
  readonly failures: readonly string[];
}

export async function runTests(binary: string, root: string): Promise<Figures> {
  const files = execFileSync('sh', ['-c', 'ls test/*.test.ts test/*/*.test.ts'], {
    cwd: root,
    encoding: 'utf8',
  })
    .trim()
    .split('\n');
  const env = {
    ...process.env,
    PATH: `${dirname(binary)}${delimiter}${process.env.PATH ?? ''}`,
    NODE_EXTRA_CA_CERTS: join(root, 'test/idp/tls/authority.pem'),
  };
  const tests = ['--import', 'tsx', '--test', '--test-reporter=tap', ...files];
  const child = spawn(binary, tests, { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'] });
  const [figures, failures] = [new Map<string, number>(), [] as string[]];
  for await (const line of createInterface(child.stdout)) {
    const [, name = '', figure] =
      /^# (tests|pass|fail|cancelled|skipped|todo|duration_ms) ([\d.]+)$/.exec(line) ?? [];
    if (figure !== undefined) figures.set(name, Number(figure));
    const failed = /^ *not ok \d+ - (.*)$/.exec(line)?.[1];
    if (failed !== undefined) failures.push(failed);
  }
  const of = (name: string) => figures.get(name) ?? 0;
  const failed = of('tests') - of('pass');
  return {
    tests: of('tests'),
    passed: of('pass'),
    failed: of('tests') === 0 ? 1 : failed,
    seconds: Math.round(of('duration_ms') / 1000),
    failures,
  };
}

/** One line for the count, one for each test that failed. */
export const describeFigures = (
  name: string,
  { tests, passed, failed, seconds, failures }: Figures,
): string =>
  [
    `${name}: ${tests} tests, ${passed} passed, ${failed} failed, ${seconds} s`,
    ...failures.map((failure) => `  ${failure}`),
  ].join('\n');
