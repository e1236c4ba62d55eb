/* The service made in other ways, none of which may change what it accepts. */

import type { Change } from './tree.ts';

export interface Variant extends Change {
  readonly name: string;
}

const ENTRIES = {
  file: 'src/process/compose.ts',
  was: 'clock, settings.tokenCacheEntries',
};

export const VARIANTS: readonly Variant[] = [
  { name: 'no-token-memory', ...ENTRIES, becomes: 'clock, 0' },
  { name: 'one-token-remembered', ...ENTRIES, becomes: 'clock, 1' },
  {
    name: 'one-request-a-batch',
    file: 'src/service/http/batches.ts',
    was: 'LARGEST_BATCH = 64',
    becomes: 'LARGEST_BATCH = 1',
  },
];
