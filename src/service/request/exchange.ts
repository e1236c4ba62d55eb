// One request with its response: whether its client is still there, why its body is refused, and its signal.
import { AsyncResource } from 'node:async_hooks';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Refused } from '../../verify/base/refusal.ts';

/** What a request needs to know of its connection. */
export interface ConnectionState {
  /** The last response is known: nothing after it is read or run (RFC 9112 §9.6). */
  readonly isEnding: boolean;
  /** Makes the response under way the last. */
  readonly endReading: () => void;
}

export class Exchange {
  readonly request;
  readonly response;
  readonly connection;
  readonly arrivedAtMillis;
  #controller: AbortController | undefined;
  #abort = () => {};
  #bodyRefusal: Refused | undefined;
  #stopReadingBody = () => {};

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    connection: ConnectionState,
    arrivedAtMillis: number,
  ) {
    this.request = request;
    this.response = response;
    this.connection = connection;
    this.arrivedAtMillis = arrivedAtMillis;
  }

  /** A response to a destroyed socket could finish before its turn, and end the process. */
  get isGone() {
    return this.response.destroyed || !this.request.socket.writable;
  }

  /** A client that gives up sometimes closes only its own side. */
  get hasLeft() {
    return this.isGone || !this.request.socket.readable;
  }

  /** Aborts when the client leaves before the response is written. */
  get controller() {
    if (this.#controller !== undefined) return this.#controller;

    const controller = new AbortController();
    this.#controller = controller;
    // In the context of the request, for tracing.
    this.#abort = AsyncResource.bind(() => controller.abort());
    if (this.hasLeft) this.leave();
    return controller;
  }

  /** For the connection, which sees that the client has closed it, or its own side. */
  leave() {
    if (!this.response.writableFinished) this.#abort();
  }

  /** Why reading the body must stop, or not begin. */
  get bodyRefusal() {
    return this.#bodyRefusal;
  }

  /** For the listener, which sees invalid and late bodies. */
  refuseBody(refused: Refused) {
    this.#bodyRefusal = refused;
    this.#stopReadingBody();
  }

  /** For the reader of the body, which stops when it is refused. */
  onBodyRefused(stop: () => void) {
    this.#stopReadingBody = stop;
  }
}
