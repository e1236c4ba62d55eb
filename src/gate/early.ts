// What an option can add to the way of a request: a reply before access is decided, and the fields that let
// pages of other origins read replies. Without options there is neither.
import type { RequestFacts } from '../verify/request/uri.ts';
import type { Refused } from '../verify/base/refusal.ts';
import type { Reply } from './reply.ts';

export interface EarlyReply {
  readonly reply: Reply | Refused;
  /** Replaces `CrossOrigin.forReading`. */
  readonly crossOrigin: readonly string[];
}

/** The reply to a request that it is meant for; `undefined` for any other. */
export type Early = (facts: RequestFacts) => EarlyReply | undefined;

/** Fields, names and values in turn (Fetch standard §3.2). */
export interface CrossOrigin {
  /** On every reply. */
  readonly vary: readonly string[];
  /** For the reply to a request with this `Origin`. */
  readonly forReading: (origin?: string) => readonly string[];
}

export const SAME_ORIGIN: CrossOrigin = { vary: [], forReading: () => [] };
