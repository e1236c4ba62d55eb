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
  breaks: ['counts tokens that were verified and that were remembered, and proofs by what their memory said'],
};

export const VARIANTS: readonly Variant[] = [
  { name: 'no-token-memory', ...ENTRIES, becomes: 'clock, 0' },
  { name: 'one-token-remembered', ...ENTRIES, becomes: 'clock, 1' },
  {
    name: 'one-request-a-batch',
    file: 'src/service/http/batches.ts',
    was: 'LARGEST_BATCH = 64',
    becomes: 'LARGEST_BATCH = 1',
    breaks: [
      'prepares the requests of one turn, then writes their responses',
      'lets no more than 64 requests wait: the last of them has all worked off at once',
    ],
  },
];
