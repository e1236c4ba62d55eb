/* The lines of Node on which gatehouse claims to run, and the binary of each. */
import { fileURLToPath } from 'node:url';

export const NODE_LINES: readonly number[] = [20, 22, 24, 26];

/** That of this process if it fits, otherwise that of the package. */
export const binaryOf = (line: number): string =>
  process.version.startsWith(`v${line}.`)
    ? process.execPath
    : fileURLToPath(new URL(`../evidence/node_modules/node${line}/bin/node`, import.meta.url));
