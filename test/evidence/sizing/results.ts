/* The measured figures that the documents state beside those of the benchmark, by the tool that measures them. */
import { readFileSync, writeFileSync } from 'node:fs';

export interface Sizing {
  readonly process: { readonly idleMebibytes: number; readonly loadedMebibytes: number };
  readonly cache: { readonly bytesEach: number };
  readonly connections: { readonly waitingBytesEach: number; readonly pipelinedMebibytes: number };
  readonly 'replay-memory': { readonly bytesEach: number };
  readonly 'replay-store': { readonly bytesEach: number };
  readonly routes: {
    readonly node: string;
    readonly count: number;
    readonly startupMillis: number;
    readonly searchMicros: number;
  };
}

const FILE = new URL('results.json', import.meta.url);

export const readSizing = () => JSON.parse(readFileSync(FILE, 'utf8')) as Sizing;

/** With the argument `--write`, replaces these figures of the last run. */
export function keep(figures: Partial<Sizing>): void {
  if (!process.argv.includes('--write')) return;
  writeFileSync(FILE, `${JSON.stringify({ ...readSizing(), ...figures }, undefined, 2)}\n`);
}
