// A request as its handler sees it. Promises: it shows neither token nor proof nor the field of a client
// certificate, so no handler can log or forward one by accident.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Asked } from '../../gate/decide.ts';
import { clientAddressOf, traceparentOf } from '../../gate/tell.ts';
import type { Exchange } from '../request/exchange.ts';
import type { DecidedAccess } from '../../gate/rules/access.ts';
import {
  authorizeCaller,
  isMadeOf,
  type Authorize,
  type AuthorizeOptions,
  type Refusal,
} from '../fetch/authorize.ts';

/** The outputs of a route's schemas. Without a schema, `query` is absent. */
export interface Inputs {
  query?: unknown;
  body?: unknown;
}

/** Of the service. */
export interface HandlerOptions extends AuthorizeOptions {
  readonly trustProxy: boolean;
  /** That of a client certificate: no handler sees it. */
  readonly hiddenField?: string | undefined;
}

/** Read-only. Computes costly members only when they are read. */
export class HandlerRequest<Admitted = unknown> {
  readonly #exchange;
  readonly #asked;
  readonly #inputs;
  readonly #options;
  /** Those that `authorize` has made, until the handler returns. */
  #refusals: Refusal[] | undefined = [];
  #query: URLSearchParams | undefined;
  #headers: IncomingHttpHeaders | undefined;
  /** As in the request target, without the query. */
  readonly path;
  readonly parameters;
  /** When access was granted, in milliseconds since the epoch. */
  readonly nowMillis;
  readonly caller;
  readonly body;

  constructor(
    exchange: Exchange,
    asked: Asked,
    parameters: Readonly<Record<string, string>>,
    nowMillis: number,
    caller: Admitted,
    options: HandlerOptions,
    inputs: Inputs = {},
  ) {
    this.#exchange = exchange;
    this.#asked = asked;
    this.#inputs = inputs;
    this.#options = options;

    this.path = asked.facts.path;
    this.parameters = parameters;
    this.nowMillis = nowMillis;
    this.caller = caller;
    this.body = inputs.body;
  }

  /** For a mount, which reads the body as it comes. */
  static exchangeOf(request: HandlerRequest) {
    return request.#exchange;
  }

  /** Why the request is turned away, if the handler has made its `Response` of a refusal of `authorize`. */
  static turnedAwayBy(request: HandlerRequest, result: unknown) {
    const made = request.#refusals?.find((refusal) => isMadeOf(result, refusal));
    request.#refusals = undefined;
    return made?.turnedAway;
  }

  get query(): unknown {
    if ('query' in this.#inputs) return this.#inputs.query;

    this.#query ??= queryOf(this.#exchange.request, this.path);
    return this.#query;
  }

  get method() {
    return this.#exchange.request.method ?? '';
  }

  /** Node's header fields, without `authorization`, `dpop`, and that of a client certificate. */
  get headers(): IncomingHttpHeaders {
    if (this.#headers === undefined) {
      const { authorization: _token, dpop: _proof, ...headers } = this.#exchange.request.headers;
      const { hiddenField } = this.#options;
      if (hiddenField !== undefined) delete headers[hiddenField];
      this.#headers = headers;
    }
    return this.#headers;
  }

  /** The client's, if well-formed, for the handler's own requests (W3C Trace Context §3.2). */
  get traceparent() {
    return traceparentOf(this.#exchange.request.rawHeaders);
  }

  /** The peer's or, if a proxy is trusted, what that says in `X-Forwarded-For`. */
  get clientAddress() {
    return clientAddressOf(this.#exchange.request, this.#options.trustProxy);
  }

  /**
   * Checks a further access of the caller, such as the scopes that a body asks for. Return its `refusal`, if
   * any. Throws a `TypeError` for `open` or anything but an access.
   */
  get authorize(): Authorize {
    const authorize = (access: DecidedAccess<unknown>) =>
      authorizeCaller(access, this.#asked, this.caller, this.#options, (refusal) => {
        this.#refusals?.push(refusal);
      });

    return authorize as Authorize;
  }

  /**
   * Aborts when the client leaves, when the handler takes too long, when an event stream ends or a body is
   * not sent, and at the end of a drain.
   */
  get signal(): AbortSignal {
    return this.#exchange.controller.signal;
  }
}

export const queryOf = (request: IncomingMessage, path: string) =>
  new URLSearchParams(request.url?.slice(path.length));
