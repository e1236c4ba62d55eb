/* What the last runs measured of each shortcut, by its name. */
import { readFileSync, writeFileSync } from 'node:fs';

export interface Measured {
  readonly micros: number;
  readonly microsWithout: number;
  /** The median of the rounds; null from runs that were recorded in words, as none. */
  readonly gainPercent: number | null;
}

export type Results = Readonly<Record<string, Measured>>;

const FILE = new URL('results.json', import.meta.url);

export const readResults = () => JSON.parse(readFileSync(FILE, 'utf8')) as Results;

/** Replaces the figures of these shortcuts. */
export const keep = (results: Results): void =>
  writeFileSync(FILE, `${JSON.stringify({ ...readResults(), ...results }, undefined, 2)}\n`);
