// The steps of a request: form → facts → early reply → route → decision → query and body → handler → reply.
// Promises: waits only for missing keys, a shared replay store, inputs and a handler's promise; reads no body
// and runs no handler before access. Does not write: responder.ts does.
import {
  andThen,
  attempt,
  isPromise,
  nothing,
  toPromise,
  type MaybePromise,
} from '../../verify/base/clock.ts';
import { refuse, Refused, refuseMethod, unavailable } from '../../verify/base/refusal.ts';
import type { RawRequest, RequestFacts } from '../../verify/request/facts.ts';
import {
  extendRecord,
  turnAway,
  turnedAwayBy,
  type Asked,
  type Early,
  type RequestRecord,
} from '../../gate/decide.ts';
import { HandlerReply, isResponse, replyToResult } from '../routes/handler-result.ts';
import { discard } from '../fetch/stream.ts';
import { CLIENT_GONE } from '../routes/body.ts';
import { HandlerRequest, queryOf, type HandlerOptions, type Inputs } from '../routes/handler-request.ts';
import type { Match, Matched } from '../routes/router.ts';
import { checkMessage, type Exchange } from './exchange.ts';

/** What is asked, and which route it is about. */
export interface Readers {
  readonly readFacts: (request: Exchange['request'] & RawRequest) => RequestFacts | Refused;
  readonly early: Early | undefined;
  /** `path` is that of the facts: a router needs no more. */
  readonly matchRoute: (path: string, facts: RequestFacts) => Matched;
}

export interface PipelineOptions extends HandlerOptions {
  readonly bodyLimitBytes: number;
  readonly handlerTimeoutSeconds: number;
}

export class Pipeline {
  readonly #readers;
  readonly #options;

  constructor(readers: Readers, options: PipelineOptions) {
    this.#readers = readers;
    this.#options = options;
  }

  /** Throws only for a bug. */
  respond(exchange: Exchange): MaybePromise<RequestRecord> {
    const { readFacts, early, matchRoute } = this.#readers;
    const { request } = exchange;
    const facts = checkMessage(request) ?? readFacts(request);
    if (facts instanceof Refused) return turnedAwayBy(facts);

    const replied = early?.(facts);
    if (replied !== undefined) return extendRecord({ facts }, replied);

    const matched = matchRoute(facts.path, facts);
    const match = matchFor(facts.method, matched);
    if (match === undefined) return this.#turnAwayUnmatched(facts, matched);

    const { route, readParameters, demands } = match;
    const asked = { facts, route, readParameters, demands, isServed: true, request };

    const serve = (record: RequestRecord) => {
      if (record.reason !== undefined) {
        return record.isGone ? { ...record, reason: undefined, refusal: undefined } : record;
      }

      const run = () => this.#run(exchange, asked, record);
      return attempt(run, (thrown) => recordThrown(exchange, record, thrown));
    };

    return andThen(this.#options.decide(asked), serve);
  }

  #turnAwayUnmatched(facts: RequestFacts, { demands, matches }: Matched) {
    // The refusal of a rule comes first.
    return andThen(this.#options.decide({ facts, demands, isServed: false }), (record) =>
      record.reason === undefined ? turnAway(record, refuseUnmatched(facts, matches)) : record,
    );
  }

  /** May throw or reject with `Refused`, `CLIENT_GONE`, `fail` or a bug. */
  #run(exchange: Exchange, asked: Match & Asked, record: RequestRecord) {
    const { facts, route, readParameters } = asked;
    const admitted = route.access.admit(record.caller);
    const { clock, replies } = this.#options;
    const nowMillis = clock.now();

    const handle = (inputs?: Inputs) => {
      const request = new HandlerRequest(
        exchange,
        asked,
        readParameters(),
        nowMillis,
        admitted,
        this.#options,
        inputs,
      );

      const reply = (result: unknown) => {
        const turnedAway = HandlerRequest.turnedAwayBy(request, result);
        const known = turnedAway ? extendRecord(record, turnedAway) : record;
        try {
          return extendRecord(known, { reply: replyToResult(result, route.method, replies.crossOrigin) });
        } catch (thrown) {
          discardUnsent(result);
          throw thrown;
        }
      };

      return andThen(this.#withinTime(exchange, route.handler(request)), reply);
    };

    const hasInputs = route.query !== undefined || route.body !== undefined;
    return hasInputs ? this.#readInputs(exchange, route, facts.path).then(handle) : handle();
  }

  async #readInputs(exchange: Exchange, { query, body }: Match['route'], path: string) {
    const read: Inputs = {};
    if (query !== undefined) {
      read.query = await this.#withinTime(exchange, query.check(queryOf(exchange.request, path)));
    }

    if (body !== undefined) {
      const { types, limitBytes = this.#options.bodyLimitBytes } = body;
      const given = await body.read(exchange, types, limitBytes);
      read.body = await this.#withinTime(exchange, body.check(given));
    }
    return read;
  }

  /** Aborts and abandons a handler or schema that takes too long. */
  #withinTime(exchange: Exchange, result: unknown) {
    if (!isPromise(result)) return result;

    const { clock, handlerTimeoutSeconds } = this.#options;
    const promise = toPromise(result);

    return new Promise((resolve, reject) => {
      const settle = () => {
        cancel();
        exchange.abandon = nothing;
      };

      const abandon = (reason: unknown) => {
        settle();
        exchange.controller.abort();
        reject(reason);
        promise.then(discardUnsent).catch(nothing);
      };

      const cancel =
        handlerTimeoutSeconds > 0
          ? clock.after(handlerTimeoutSeconds * 1000, () => abandon(unavailable('handler-timeout')))
          : nothing;

      exchange.abandon = () => abandon(CLIENT_GONE);
      promise.finally(settle).then(resolve, reject);
    });
  }
}

/** RFC 9110 §9.3.2: HEAD runs the route of GET. */
function matchFor(method: string, { matches }: Matched) {
  const wanted = method === 'HEAD' ? 'GET' : method;
  for (const match of matches) {
    if (match.route.method === wanted) return match;
  }
  return undefined;
}

function refuseUnmatched({ uri }: RequestFacts, matches: readonly Match[]) {
  if (uri !== undefined) return refuse('route-missing');
  if (matches.length === 0) return refuse('not_found');

  const methods = matches.map(({ route }) => route.method);
  const allowed = methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : method));
  return refuseMethod([...new Set(allowed)]);
}

/** A stream that comes too late, or is refused. Throws if the result does not let itself be read. */
function discardUnsent(result: unknown) {
  if (isResponse(result)) discard(result.body);
}

/** The one place for what inputs, handlers and their streams throw. */
export function recordThrown(exchange: Exchange, record: RequestRecord, error: unknown): RequestRecord {
  const thrown = causeOf(exchange, error);
  // A handler may rethrow its signal's abort.
  if (thrown === CLIENT_GONE || (exchange.hasLeft && isAbort(thrown))) return record;

  if (!HandlerReply.isGenuine(thrown) || thrown.turnedAway === undefined) return turnAway(record, thrown);

  const { turnedAway, reply } = thrown;
  return extendRecord(extendRecord(record, turnedAway), { reply });
}

/** If the request's body has failed, that is the cause: libraries hide it in an error of their own. */
function causeOf({ response, bodyFailure }: Exchange, error: unknown) {
  const isMeant = Refused.is(error) || HandlerReply.isGenuine(error) || response.headersSent;
  return isMeant ? error : (bodyFailure ?? error);
}

/** Axios has its own name for it. */
function isAbort(error: unknown) {
  try {
    return /^(Abort|Canceled)Error$/.test(Object(error).name);
  } catch {
    return false;
  }
}
