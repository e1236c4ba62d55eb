/* The tools for evidence that have packages of their own: installed, type-checked and run by a test. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { TestContext } from 'node:test';

/** Runs the tool in this folder; its failure is the test's. Skips the test where the packages cannot be had. */
export function runTool(
  context: TestContext,
  folder: string,
  environment: Record<string, string> = {},
): void {
  const flags = ['ci', '--silent', '--no-audit', '--no-fund', '--prefix', folder];
  const installed = spawnSync('npm', flags, { timeout: 60_000 });
  if (installed.status !== 0 && !existsSync(`${folder}node_modules`)) {
    context.skip('its packages cannot be had');
    return;
  }

  assert.equal(spawnSync('npx', ['tsc', '-p', folder], { encoding: 'utf8' }).stdout, '');
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', 'tsx', `${folder}run.ts`], {
    encoding: 'utf8',
    env: { ...process.env, ...environment },
  });
  assert.equal(status, 0, stdout.slice(-5000) + stderr);
}
