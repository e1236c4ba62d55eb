/* The tools for evidence that have packages of their own: installed, type-checked and run by a test. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { withReason } from './skipped.ts';

const UNREACHABLE = /\b(?:ENOTFOUND|EAI_AGAIN|ECONN\w+|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT)\b/;

/** Why the packages cannot be had: nothing but a registry out of reach, which a machine may be. */
function missingIn(folder: string): string | undefined {
  const flags = ['ci', '--loglevel=error', '--no-audit', '--no-fund', '--prefix', folder];
  const { status, stderr } = spawnSync('npm', flags, { encoding: 'utf8', timeout: 60_000 });
  if (status === 0 || existsSync(`${folder}node_modules`)) return undefined;

  assert.ok(status === null || UNREACHABLE.test(stderr), stderr);
  return 'its packages cannot be had';
}

/** A test that runs the tool in this folder, whose failure is its own. */
export function testTool(name: string, folder: string, environment: Record<string, string> = {}): void {
  const missing = missingIn(folder);

  test(withReason(name, missing), { skip: missing !== undefined }, () => {
    assert.equal(spawnSync('npx', ['tsc', '-p', folder], { encoding: 'utf8' }).stdout, '');
    const words = ['--import', 'tsx', `${folder}run.ts`];
    const { status, stdout, stderr } = spawnSync(process.execPath, words, {
      encoding: 'utf8',
      env: { ...process.env, ...environment },
    });
    assert.equal(status, 0, stdout.slice(-5000) + stderr);
  });
}
