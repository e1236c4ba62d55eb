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
  breaks: [
    'counts verified and cached tokens, and proofs by the verdict of the replay store',
    'the tool closures counts the functions that a warm request enters, and none that only a start needs',
  ],
};

export const VARIANTS: readonly Variant[] = [
  { name: 'no-token-cache', ...ENTRIES, becomes: 'clock, 0' },
  { name: 'one-token-cached', ...ENTRIES, becomes: 'clock, 1' },
];
