/* How the tests are run: a process that ends before its tests fails the run. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

// In the run that the test below starts, this file ends its process as a careless test would.
if (process.env.END_EARLY === 'true') process.exit(0);

test('a run fails if a file ends its process with 0 before its tests', () => {
  const { NODE_TEST_CONTEXT: _, ...environment } = process.env;
  const words = ['--import', 'tsx', fileURLToPath(new URL('run.ts', import.meta.url)), 'run.test.ts'];
  const env = { ...environment, END_EARLY: 'true' };
  const { status, stdout } = spawnSync(process.execPath, words, { env, encoding: 'utf8' });
  assert.equal(status, 1, stdout);
});
