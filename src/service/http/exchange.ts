// One request on its way through the pipeline: what was learnt of it, and the signal that tells its handler
// to give up.
import { AsyncResource } from 'node:async_hooks';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestFlaw } from '../../verify/base/events.ts';
import { isGone } from './write.ts';
import type { Access } from '../../gate/access.ts';
import type { Route } from '../routes/route.ts';

/** What is read of a request before its body. */
export interface Head {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  /** Where a framework that rewrites `url` keeps what the client has asked for. */
  readonly originalUrl?: string | undefined;
  readonly rawHeaders: readonly string[];
  /** HTTP/1.0 may leave out Host. */
  readonly httpVersion?: string | undefined;
}

/** What is learnt of a request on its way, and told of it at the end. */
export abstract class Learnt {
  abstract readonly request: Head;
  /** By the monotonic clock; 0 while nobody asks for it. */
  abstract readonly arrivedAt: number;
  /** Fields that say who may read the reply, in place of those of the settings. */
  crossOrigin?: readonly string[];
  route?: Route | undefined;
  /** What decides access before the route does: rules for a prefix, or what a gate is asked for. */
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

/** What a response emits when the client has closed its side. */
export const CLIENT_CLOSED = Symbol('client closed');

/** Node would track when it is collected. */
const UNTRACKED = { requireManualDestroy: true };

/** A request with its response, until it is answered. */
export class Exchange extends Learnt {
  readonly request;
  readonly response;
  readonly arrivedAt;
  readonly #context = new AsyncResource('gatehouse.request', UNTRACKED);
  #made: AbortController | undefined;

  constructor(request: IncomingMessage, response: ServerResponse, arrivedAt: number) {
    super();
    this.request = request;
    this.response = response;
    this.arrivedAt = arrivedAt;
  }

  /**
   * Runs this in the asynchronous context in which the request arrived, whichever request the queue is
   * worked off for: tracing depends on it.
   */
  run<Result, Rest extends unknown[]>(
    work: (exchange: Exchange, ...rest: Rest) => Result,
    ...rest: Rest
  ): Result {
    return this.#context.runInAsyncScope(work, undefined, this, ...rest);
  }

  /** Whether the client has closed its side, as those do who give up, or the connection is gone. */
  get hasLeft() {
    return isGone(this.request, this.response) || !this.request.socket.readable;
  }

  /**
   * Tells the handler to give up; by itself when the client has left before the reply was written. Made when
   * it is first asked for.
   */
  get controller() {
    if (this.#made !== undefined) return this.#made;

    const { response } = this;
    const controller = new AbortController();
    this.#made = controller;

    const giveUp = () => {
      if (!response.writableFinished) controller.abort();
    };

    if (this.hasLeft) giveUp();
    // `close` of the request comes too when all is well.
    response.once('close', giveUp).once(CLIENT_CLOSED, giveUp);
    return controller;
  }
}
