/* Runs the built service with arguments, as operators and images do, in a new directory. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const SERVER = fileURLToPath(new URL('../../dist/server.js', import.meta.url));
const AUTHORITY = fileURLToPath(new URL('../idp/tls/authority.pem', import.meta.url));

export interface Outcome {
  readonly code: number | null;
  readonly output: string;
  /** The lines on standard error. */
  readonly errors: readonly string[];
}

/** The exit and output with these arguments, this environment and these files in its directory. */
export async function runCommand(
  words: readonly string[],
  environment: Readonly<Record<string, string>>,
  files: Readonly<Record<string, string>> = {},
  program: readonly string[] = [process.execPath, SERVER],
): Promise<Outcome> {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-'));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(directory, name), content);
  const { PATH = '' } = process.env;
  const env = { PATH, NODE_EXTRA_CA_CERTS: AUTHORITY, ...environment };
  const [file = '', ...own] = program;
  const child = spawn(file, [...own, ...words], { cwd: directory, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  let errors = '';
  child.stdout.on('data', (piece) => {
    output += piece;
  });
  child.stderr.on('data', (piece) => {
    errors += piece;
  });
  const [code] = await once(child, 'close');
  rmSync(directory, { recursive: true });
  return { code, output, errors: errors.split('\n').slice(0, -1) };
}
