/* Every file looks as the formatter makes it look. Skipped where the formatter, which is no dependency,
   cannot be had. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

test('every file is laid out as `npm run format` does it', (context) => {
  const { scripts } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as {
    scripts: Record<string, string>;
  };
  const command = scripts.format?.replace('--write', '--check') ?? '';
  const { status, stderr } = spawnSync(command, {
    cwd: ROOT,
    shell: true,
    encoding: 'utf8',
    timeout: 120_000,
  });
  if (status === null || /^npm (?:error|ERR!)/m.test(stderr)) context.skip('the formatter cannot be had');
  else assert.equal(status, 0, stderr);
});
