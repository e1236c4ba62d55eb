// One request with its response, asynchronous context, and signal.
import { AsyncResource } from 'node:async_hooks';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isGone } from '../connection/write.ts';

/** Emitted on a response when the client has closed its side. */
export const CLIENT_CLOSED = Symbol('client closed');

/** Else Node tracks when contexts are collected. */
const UNTRACKED = { requireManualDestroy: true };

export class Exchange {
  readonly request;
  readonly response;
  readonly arrivedAtMillis;
  readonly #context = new AsyncResource('gatehouse.request', UNTRACKED);
  #controller: AbortController | undefined;

  constructor(request: IncomingMessage, response: ServerResponse, arrivedAtMillis: number) {
    this.request = request;
    this.response = response;
    this.arrivedAtMillis = arrivedAtMillis;
  }

  /** In this request's asynchronous context, for tracing. */
  run<Result, Rest extends unknown[]>(
    work: (exchange: Exchange, ...rest: Rest) => Result,
    ...rest: Rest
  ): Result {
    return this.#context.runInAsyncScope(work, undefined, this, ...rest);
  }

  /** A client that gives up sometimes closes only its own side. */
  get hasLeft() {
    return isGone(this.request, this.response) || !this.request.socket.readable;
  }

  /** Aborts when the client leaves before the response is written. */
  get controller() {
    if (this.#controller !== undefined) return this.#controller;

    const { response } = this;
    const controller = new AbortController();
    this.#controller = controller;

    const giveUp = () => {
      if (!response.writableFinished) this.run(() => controller.abort());
    };

    if (this.hasLeft) giveUp();
    // The request's `close` also follows success.
    response.once('close', giveUp).once(CLIENT_CLOSED, giveUp);
    return controller;
  }
}
