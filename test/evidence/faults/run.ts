/* The long faults, one after the other: each is a test of Node's runner. Arguments select some of them by
   name.

   Shows: key rotation, floods, hostile clients, rollouts and outages, under load.
   Takes: 20 min.
   Needs: nginx and haproxy for the rollouts. */
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const names = process.argv.slice(2);

const files = readdirSync(HERE).filter(
  (file) => file !== 'run.ts' && (names.length === 0 || names.includes(basename(file, '.ts'))),
);

const flags = ['--import', 'tsx', '--test', '--test-concurrency=1', '--test-reporter=spec'];

const { status } = spawnSync(process.execPath, [...flags, ...files.map((file) => join(HERE, file))], {
  stdio: 'inherit',
});

process.exitCode = status ?? 1;
