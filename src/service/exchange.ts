// One request on its way through the pipeline: what was learnt of it, and the signal that tells its handler
// to give up.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestFlaw } from '../base/events.ts';
import { isGone } from '../reply/write.ts';
import type { Access } from '../routes/access.ts';
import type { Row } from '../routes/row.ts';

/** What is read of a request before its body. */
export interface Head {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  /** Where a framework that rewrites `url` keeps what the client has asked for. */
  readonly originalUrl?: string | undefined;
  readonly rawHeaders: readonly string[];
}

/** What is learnt of a request on its way, and told of it at the end. */
export abstract class Learnt {
  abstract readonly request: Head;
  /** By the monotonic clock; 0 while nobody asks for it. */
  abstract readonly arrivedAt: number;
  /** Fields that say who may read the reply, in place of those of the settings. */
  crossOrigin?: readonly string[];
  row?: Row | undefined;
  /** What decides access before the row does: rules for a prefix, or what a gate is asked for. */
  rules?: readonly { readonly access: Access<unknown> }[];
  /** The provider's name of the key that the token was verified with. */
  kid?: string | undefined;
  /** The configured name of its issuer. */
  issuerName?: string;
  /** A nonce that the reply shall carry. */
  freshNonce?: string | undefined;
  /** Absent when it was served. */
  reason?: RequestFlaw;
  /** What was thrown, with the reason `bug`. */
  failure?: unknown;
}

/** A request with its response, until it is answered. */
export class Exchange extends Learnt {
  readonly request;
  readonly response;
  readonly arrivedAt;
  #made: AbortController | undefined;

  constructor(request: IncomingMessage, response: ServerResponse, arrivedAt: number) {
    super();
    this.request = request;
    this.response = response;
    this.arrivedAt = arrivedAt;
  }

  /**
   * Tells the handler to give up; by itself when the client has gone before the reply was written. Made when
   * it is first asked for.
   */
  get controller() {
    if (this.#made !== undefined) return this.#made;

    const { request, response } = this;
    const controller = new AbortController();
    this.#made = controller;
    if (isGone(request, response)) controller.abort();
    // `close` of the request comes too when all is well.
    response.once('close', () => {
      if (!response.writableFinished) controller.abort();
    });
    return controller;
  }
}
