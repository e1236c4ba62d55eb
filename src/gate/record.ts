// What became of a request. Each stage returns what it learnt; nobody changes it afterwards.
import type { Fields, RequestReason } from '../verify/base/events.ts';
import type { Findings } from '../verify/base/refusal.ts';
import type { Caller } from '../verify/caller.ts';
import type { RequestFacts } from '../verify/request/uri.ts';
import type { Access } from './access.ts';
import type { Reply } from './reply.ts';

export interface RawRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  /** What the client sent, where a framework rewrites `url`. */
  readonly originalUrl?: string | undefined;
  readonly rawHeaders: readonly string[];
  readonly httpVersion?: string | undefined;
}

export interface MatchedRoute {
  readonly method: string;
  readonly pattern: string;
  readonly access: Access<unknown>;
}

/** A request, and when it began to be served. */
export interface Arrival {
  readonly request: RawRequest;
  /** Monotonic milliseconds; 0 when nobody reads it. */
  readonly arrivedAtMillis: number;
}

/** What is known of a request so far. */
export interface Known {
  readonly facts?: RequestFacts;
  readonly route?: MatchedRoute | undefined;
  readonly rules?: readonly { readonly access: Access<unknown> }[];
  readonly caller?: Caller | undefined;
  /** Replaces `CrossOrigin.forReading`. */
  readonly crossOrigin?: readonly string[];
}

/** `refused` was returned or thrown. */
export type Outcome = { readonly known?: Known | undefined } & (
  { readonly reply: Reply } | { readonly refused: unknown; readonly reply?: undefined }
);

/** An outcome whose refusal has become a reply. Without `reply`, the client has gone. */
export interface Settled {
  readonly known?: Known | undefined;
  readonly reply?: Reply | undefined;
  readonly reason?: RequestReason;
  /** For the log. */
  readonly bug?: Fields;
  /** Of a request without a caller. */
  readonly findings?: Findings;
}
