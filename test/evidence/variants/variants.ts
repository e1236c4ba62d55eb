/* Variants of the service that must accept the same requests. */

import type { Change } from './tree.ts';

export interface Variant extends Change {
  readonly name: string;
  /** The tests of what is changed, which may fail. */
  readonly breaks: readonly string[];
}

const ENTRIES = {
  file: 'src/process/compose.ts',
  was: 'clock, settings.tokenCacheEntries',
  breaks: ['counts verified and cached tokens, and proofs by the verdict of the replay store'],
};

export const VARIANTS: readonly Variant[] = [
  { name: 'no-token-memory', ...ENTRIES, becomes: 'clock, 0' },
  { name: 'one-token-remembered', ...ENTRIES, becomes: 'clock, 1' },
  {
    name: 'one-request-a-batch',
    file: 'src/service/connection/batches.ts',
    was: 'LARGEST_BATCH = 64',
    becomes: 'LARGEST_BATCH = 1',
    breaks: [
      'computes the replies of one turn, then writes the responses',
      'processes waiting requests as soon as there are 64, and the rest together in a later turn',
    ],
  },
];
