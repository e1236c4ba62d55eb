// What is settled before a route or an access is looked for, and who may read a reply: what an option can
// add to the way of a request. Without options there is nothing early, and no reply is for another origin.
import type { RequestFacts } from '../verify/request/uri.ts';
import type { Refused } from '../verify/base/refusal.ts';
import type { Reply } from './reply.ts';

/** A reply, or a refusal, that needs no token. */
export interface EarlyReply {
  readonly reply: Reply | Refused;
  /** Fields that say who may read it, in place of those of `CrossOrigin`. */
  readonly crossOrigin: readonly string[];
}

/** Gives an early reply to a request that is meant for it; `undefined` for any other. */
export type Early = (facts: RequestFacts) => EarlyReply | undefined;

/** Fields, names and values in turn, by which browsers let pages of other origins read replies. */
export interface CrossOrigin {
  /** On every reply. */
  readonly vary: readonly string[];
  /** On a reply to a request with this `Origin`. */
  readonly forReading: (origin?: string) => readonly string[];
}

export const SAME_ORIGIN: CrossOrigin = { vary: [], forReading: () => [] };
