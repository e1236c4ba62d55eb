// What an option may add: replies before access is checked, and the fields that let pages of other origins
// read responses.
import type { RequestFacts } from '../verify/request/uri.ts';
import type { Outcome } from './record.ts';

/** `undefined`: the request needs no early reply. */
export type Early = (facts: RequestFacts) => Outcome | undefined;

/** Fields: names and values in turn (Fetch standard §3.2). */
export interface CrossOrigin {
  /** On every reply. */
  readonly vary: readonly string[];
  /** For a request with this `Origin`. */
  readonly forReading: (origin?: string) => readonly string[];
}

export const SAME_ORIGIN: CrossOrigin = { vary: [], forReading: () => [] };
