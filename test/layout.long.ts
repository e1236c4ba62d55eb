/* Every file is formatted. Skipped if the formatter, which is no dependency, is not available. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { withReason } from './support/skipped.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

const { scripts } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as {
  scripts: { format: string };
};

const { status, stderr } = spawnSync(scripts.format.replace('--write', '--check'), {
  cwd: ROOT,
  shell: true,
  encoding: 'utf8',
  timeout: 120_000,
});

const missing =
  status === null || /^npm (?:error|ERR!)/m.test(stderr) ? 'the formatter cannot be had' : undefined;

test(
  withReason('every file is laid out as `npm run format` does it', missing),
  { skip: missing !== undefined },
  () => assert.equal(status, 0, stderr),
);
