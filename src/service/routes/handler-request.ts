// A request as its handler sees it, and a further access of its caller, such as what its body asks for.
// Promises: it shows neither token nor proof nor the field of a client certificate, so no handler can log or
// forward one by accident. Checks neither token nor proof again.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Asked, Decide } from '../../gate/decide.ts';
import type { Authorization } from '../../gate/foreign/verdict.ts';
import type { Replied, Replies } from '../../gate/replies/refusal-replies.ts';
import { pairsOf } from '../../gate/replies/reply.ts';
import { isAccess, mayWait, toBeAwaited, type Access, type DecidedAccess } from '../../gate/rules/access.ts';
import { clientAddressOf, traceparentOf } from '../../gate/tell.ts';
import { andThen, type Clock } from '../../verify/base/clock.ts';
import { claimsOf, copyOf, isGenuine, type Caller } from '../../verify/caller.ts';
import type { Exchange } from '../request/exchange.ts';
import { HandlerReply, isResponse } from './handler-result.ts';

/** The outputs of a route's schemas. Without a schema, `query` is absent. */
export interface Inputs {
  query?: unknown;
  body?: unknown;
}

/** Of the service. */
export interface HandlerOptions {
  readonly decide: Decide;
  readonly replies: Replies;
  readonly clock: Clock;
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
  static servedOf(request: HandlerRequest) {
    return { source: request.#exchange, facts: request.#asked.facts };
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

  /** Node's header fields, without `authorization`, `dpop` and the field of a client certificate. */
  get headers(): IncomingHttpHeaders {
    if (this.#headers === undefined) {
      const { authorization: _token, dpop: _proof, ...headers } = this.#exchange.request.headers;
      const { hiddenField } = this.#options;
      if (hiddenField !== undefined) delete headers[hiddenField];
      this.#headers = headers;
    }
    return this.#headers;
  }

  /** The `traceparent` header, if well-formed, for the handler's own requests (W3C Trace Context §3.2). */
  get traceparent() {
    return traceparentOf(this.#exchange.request.rawHeaders);
  }

  /** The peer's address or, if a proxy is trusted, the last address in `X-Forwarded-For`. */
  get clientAddress() {
    return clientAddressOf(this.#exchange.request, this.#options.trustProxy);
  }

  /**
   * Checks a further access of the caller, such as the scopes that a body asks for. Return its `refusal`, if
   * any. Throws a `TypeError` for `open` or anything but an access.
   */
  get authorize(): Authorize {
    const authorize = (access: DecidedAccess<unknown>) => this.#authorize(access);
    return authorize as Authorize;
  }

  /** Guards and challenge alone. */
  #authorize(access: DecidedAccess<unknown>) {
    if (!isAccess(access) || access.credentials === 'ignored') throw new TypeError(NO_ACCESS);

    const { decide, replies, clock } = this.#options;
    const caller: Caller | undefined = isGenuine(this.caller) ? this.caller : undefined;
    const now = caller && copyOf(caller, claimsOf(caller), clock.now());
    const asked = { ...this.#asked, demands: [access], known: { caller: now } };

    const authorized = andThen(decide(asked), (record) => {
      // The refusal would reach no client.
      if (record.isGone) throw new DOMException('the client has left', 'AbortError');
      if (record.reason === undefined) return { caller: access.admit(caller) };

      const refusal = new Refusal(replies.complete(record, asked.facts));
      this.#refusals?.push(refusal);
      return { refusal };
    });
    return mayWait(access) ? toBeAwaited(authorized) : authorized;
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

/**
 * Test `refusal`, and return it. Returns a promise if the access has a `decision`; `await` fits both. Throws
 * a `TypeError` for `open`, and for anything but an access.
 */
export interface Authorize {
  <Admitted>(access: Access<Admitted>): Authorization<Admitted>;
  <Admitted>(access: DecidedAccess<Admitted>): Promise<Authorization<Admitted>>;
}

const NO_ACCESS = 'authorize needs an access that is not open, such as needs()';

/** What the service sends if the handler returns it. */
class Refusal extends HandlerReply {
  readonly status;
  readonly headers;
  readonly body;

  /** Without the facts: they hold the token, which no handler gets. */
  constructor({ reply, freshNonce: _, facts: _facts, ...turnedAway }: Replied) {
    super(reply, turnedAway);
    this.status = reply.status;
    this.headers = pairsOf(reply.fields);
    this.body = String(reply.content) || null;
  }
}

/** Whether `new Response(refusal.body, refusal)` has made it. Others may have added fields since. */
function isMadeOf(result: unknown, { status, headers }: Refusal) {
  if (!isResponse(result) || result.status !== status) return false;

  const sent = new Map(result.headers.entries());
  const made = [...new Headers(headers)];
  return made.every(([name, value]) => sent.get(name) === value);
}
