/* The private package that all evidence tools share, and its installation. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const FOLDER = fileURLToPath(new URL('../evidence/', import.meta.url));
const UNREACHABLE = /\b(?:ENOTFOUND|EAI_AGAIN|ECONN\w+|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT)\b/;

/** The arguments of npm. Unlike `ci` it keeps what is installed, which is a gigabyte. */
export const INSTALL = [
  ...['install', '--no-save', '--loglevel=error', '--no-audit', '--no-fund'],
  ...['--prefix', FOLDER],
];

/** Why the packages are missing: only an unreachable registry is an excuse. */
export function missingPackages(): string | undefined {
  // The tests trust the authority of the fake provider; a registry may need the machine's own.
  const { MACHINE_CA_CERTS: machineOwn = '', ...environment } = process.env;
  const { status, stderr, error } = spawnSync('npm', INSTALL, {
    encoding: 'utf8',
    timeout: 240_000,
    env: { ...environment, NODE_EXTRA_CA_CERTS: machineOwn },
  });
  if (status === 0) return undefined;

  assert.ok(error !== undefined || UNREACHABLE.test(stderr), stderr);
  return 'the packages cannot be had';
}
