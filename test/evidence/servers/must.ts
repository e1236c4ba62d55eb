/* A command that has to succeed. */
import { spawnSync } from 'node:child_process';

/** Throws what the command prints, if it fails. */
export function must(command: string, words: readonly string[], cwd: string) {
  const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1', ASTRO_TELEMETRY_DISABLED: '1' };
  const { status, stdout, stderr } = spawnSync(command, words, { cwd, env, encoding: 'utf8' });
  if (status !== 0) throw new Error(stdout + stderr);
}
