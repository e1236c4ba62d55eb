/* The one package that the tools for evidence share: what it takes to have it. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const FOLDER = fileURLToPath(new URL('../evidence/', import.meta.url));
const UNREACHABLE = /\b(?:ENOTFOUND|EAI_AGAIN|ECONN\w+|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT)\b/;

/** The words for npm. Unlike `ci` it leaves what is there, which is a gigabyte. */
export const INSTALL = [
  ...['install', '--no-save', '--loglevel=error', '--no-audit', '--no-fund'],
  ...['--prefix', FOLDER],
];

/** Why the packages cannot be had: nothing but a registry out of reach, which a machine may be. */
export function missingPackages(): string | undefined {
  const { status, stderr } = spawnSync('npm', INSTALL, { encoding: 'utf8', timeout: 240_000 });
  if (status === 0) return undefined;

  assert.ok(status === null || UNREACHABLE.test(stderr), stderr);
  return 'the packages cannot be had';
}
