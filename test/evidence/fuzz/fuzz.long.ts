/* A short run of the comparison with others, so that the tool works on the day when it is needed. Skipped
   where its packages cannot be had. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));

test('the fuzzer finds nothing in ten seconds that others judge otherwise without a reason', (context) => {
  const flags = ['ci', '--silent', '--no-audit', '--no-fund', '--prefix', FOLDER];
  const installed = spawnSync('npm', flags, { timeout: 60_000 });
  if (installed.status !== 0 && !existsSync(`${FOLDER}node_modules`)) {
    context.skip('its packages cannot be had');
    return;
  }

  assert.equal(spawnSync('npx', ['tsc', '-p', FOLDER], { encoding: 'utf8' }).stdout, '');
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', 'tsx', `${FOLDER}run.ts`], {
    encoding: 'utf8',
    env: { ...process.env, FUZZ_SECONDS: '10' },
  });
  assert.equal(status, 0, stdout.slice(-5000) + stderr);
});
