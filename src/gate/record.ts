// A request, and what its reply, log lines and metrics need to know.
import type { RequestReason } from '../verify/base/events.ts';
import type { Findings } from '../verify/base/refusal.ts';
import type { Caller } from '../verify/caller.ts';
import type { Access } from './access.ts';

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

export abstract class RequestRecord {
  abstract readonly request: RawRequest;
  /** Monotonic milliseconds; 0 when nobody reads it. */
  abstract readonly arrivedAtMillis: number;
  crossOrigin?: readonly string[];
  /** Of the request that a proxy asks about. */
  forwardedMethod?: string;
  route?: MatchedRoute | undefined;
  rules?: readonly { readonly access: Access<unknown> }[];
  caller?: Caller | undefined;
  /** Of a request without a caller. */
  findings?: Findings;
  reason?: RequestReason;
  error?: unknown;
}
