// What becomes known of a request on its way, for the reply, the log and the metrics. A record, not a
// decision: no check reads it.
import type { RequestReason } from '../verify/base/events.ts';
import type { Access } from './access.ts';

/** What is read of a request before its body. */
export interface RequestHead {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  /** Where a framework that rewrites `url` keeps what the client has asked for. */
  readonly originalUrl?: string | undefined;
  readonly rawHeaders: readonly string[];
  /** HTTP/1.0 may leave out Host. */
  readonly httpVersion?: string | undefined;
}

/** What the log and a challenge say of a route. */
export interface MatchedRoute {
  readonly method: string;
  readonly pattern: string;
  readonly access: Access<unknown>;
}

/** What becomes known of a request, and is told of it at the end. */
export abstract class RequestRecord {
  abstract readonly request: RequestHead;
  /** By the monotonic clock; 0 while nobody asks for it. */
  abstract readonly arrivedAt: number;
  /** Fields that say who may read the reply, in place of those of the settings. */
  crossOrigin?: readonly string[];
  route?: MatchedRoute | undefined;
  /** What decides access before the route does: rules for a prefix, or what a gate is asked for. */
  rules?: readonly { readonly access: Access<unknown> }[];
  /** The provider's name of the key that the token was verified with. */
  kid?: string | undefined;
  /** The configured name of its issuer. */
  issuerName?: string;
  /** A nonce that the reply shall carry. */
  freshNonce?: string | undefined;
  /** Absent when it was served. */
  reason?: RequestReason;
  /** What was thrown, with the reason `bug`. */
  failure?: unknown;
}
