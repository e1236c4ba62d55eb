/* Runs every test of a tree with a Node binary and counts them, without coverage. */
import { spawn } from 'node:child_process';
import { delimiter, dirname } from 'node:path';
import { createInterface } from 'node:readline';

export interface Figures {
  readonly tests: number;
  readonly passed: number;
  /** For what the machine lacks. */
  readonly skipped: number;
  readonly failed: number;
  readonly seconds: number;
  readonly failures: readonly string[];
}

export async function runTests(binary: string, root: string): Promise<Figures> {
  const env = { ...process.env, PATH: `${dirname(binary)}${delimiter}${process.env.PATH ?? ''}` };
  const child = spawn(binary, ['--import', 'tsx', 'test/run.ts'], {
    cwd: root,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const figures = new Map<string, number>();
  const failures: string[] = [];
  for await (const line of createInterface(child.stdout)) {
    const [, name = '', figure] = /^ℹ (\w+) ([\d.]+)$/.exec(line) ?? [];
    if (figure !== undefined) figures.set(name, Number(figure));
    // Only those below the closing lines, since each failure is printed twice.
    const failure = /^✖ (.+) \([\d.]+ms\)$/.exec(line)?.[1];
    if (failure !== undefined && figures.size > 0) failures.push(failure);
  }

  const of = (name: string) => figures.get(name) ?? 0;
  // Also those that were cancelled.
  const failed = of('tests') - of('pass') - of('skipped');
  return {
    tests: of('tests'),
    passed: of('pass'),
    skipped: of('skipped'),
    failed: of('tests') === 0 ? 1 : failed,
    seconds: Math.round(of('duration_ms') / 1000),
    failures,
  };
}

/** One line for the count, one for each test that failed. */
export const describeFigures = (
  name: string,
  { tests, passed, skipped, failed, seconds, failures }: Figures,
): string =>
  [
    `${name}: ${tests} tests, ${passed} passed, ${skipped} skipped, ${failed} failed, ${seconds} s`,
    ...failures.map((failure) => `  ${failure}`),
  ].join('\n');
