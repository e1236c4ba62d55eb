// A request as a route and its handler see it; what costs something is made when it is first read. Promises:
// neither token nor proof is in anything that it gives, so that no handler can log or forward one by
// accident.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { traceparentOf } from '../../verify/request/fields.ts';

/** Of an exchange: Node's own request, and what tells a handler to give up. */
export interface ExchangeParts {
  readonly request: IncomingMessage;
  readonly controller: AbortController;
}

/** `Admitted` is whom the route's access has admitted. */
export class Incoming<Admitted = unknown> {
  readonly #exchange;
  /** As it stands in the request, without the query. */
  readonly path;
  readonly parameters;
  /** The time of the request, since the epoch. */
  readonly nowMillis;
  readonly caller;
  /** What the route takes as its body. */
  body: unknown;

  constructor(
    exchange: ExchangeParts,
    path: string,
    parameters: Readonly<Record<string, string>>,
    nowMillis: number,
    caller: Admitted,
  ) {
    this.#exchange = exchange;
    this.path = path;
    this.parameters = parameters;
    this.nowMillis = nowMillis;
    this.caller = caller;
  }

  /** The query as it is, until a route's schema has made something else of it. */
  get query(): URLSearchParams {
    return new URLSearchParams(this.#exchange.request.url?.slice(this.path.length));
  }

  set query(output: unknown) {
    Object.defineProperty(this, 'query', { value: output });
  }

  get method() {
    return this.#exchange.request.method ?? '';
  }

  /** Node's header fields, without `authorization` and `dpop`. */
  get headers(): IncomingHttpHeaders {
    const { authorization: _token, dpop: _proof, ...headers } = this.#exchange.request.headers;
    return headers;
  }

  /** The caller's, when it is well-formed (W3C Trace Context §3.2): for requests of the handler's own. */
  get traceparent() {
    return traceparentOf(this.#exchange.request.rawHeaders);
  }

  /** Aborts when the client has gone, when the handler has taken too long, and at the end of a drain. */
  get signal(): AbortSignal {
    return this.#exchange.controller.signal;
  }
}
