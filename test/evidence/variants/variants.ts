/* Variants of the service that must accept the same requests. */

import type { Change } from './tree.ts';

export interface Variant extends Change {
  readonly name: string;
  /** The tests of what is changed, which may fail. */
  readonly breaks: readonly string[];
}

const ENTRIES = {
  file: 'src/gate/checks.ts',
  was: 'clock, values.tokenCacheEntries',
  breaks: ['counts verified and cached tokens, and proofs by the verdict of the replay store'],
};

export const VARIANTS: readonly Variant[] = [
  { name: 'no-token-memory', ...ENTRIES, becomes: 'clock, 0' },
  { name: 'one-token-remembered', ...ENTRIES, becomes: 'clock, 1' },
];
