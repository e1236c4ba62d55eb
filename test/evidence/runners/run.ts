/* Runs the adverse inputs of test/support/adverse.cjs under the real Jest and the real Vitest: both load code
   in realms of their own, in which the errors of Node are of other classes.

   Shows: the recognition of Node's errors under Jest, and under Vitest with `vmThreads`.
   Takes: 5 s.
   Needs: packages. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const HERE = fileURLToPath(new URL('./', import.meta.url));
const PACKAGES = fileURLToPath(new URL('../node_modules/', import.meta.url));

const RUNNERS: Readonly<Record<string, readonly string[]>> = {
  Jest: ['jest/bin/jest.js', '--ci', '--config', 'jest.config.cjs'],
  Vitest: ['vitest/vitest.mjs', 'run', '--config', 'vitest.config.mjs'],
};

for (const [name, [program = '', ...words]] of Object.entries(RUNNERS)) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [PACKAGES + program, ...words], {
    cwd: HERE,
    encoding: 'utf8',
    env: { ...process.env, CI: 'true', NO_COLOR: '1' },
  });
  const text = stdout + stderr;
  assert.equal(status, 0, `${name}: ${text}`);
  const [, passed] = /^ *Tests:? +(\d+) passed/m.exec(text) ?? [];
  assert.ok(Number(passed) > 10, `${name}: ${text}`);
  console.log(`${name}: ${passed} tests passed`);
}
