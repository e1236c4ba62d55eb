// The steps of a request: form → Host → path → early reply → rules and route → credentials → token → sender →
// access → query and body → handler → reply. Promises: awaits only missing keys, a shared replay store,
// inputs and a handler's promise; reads no body and runs no handler before access. Does not write, or turn
// errors into replies: responder.ts does.
import { andThen, isPromise, type Clock, type MaybePromise } from '../../verify/base/clock.ts';
import { refuse, Refused, refuseMethod, unavailable } from '../../verify/base/refusal.ts';
import { replyToResult } from '../routes/handler-result.ts';
import type { Reply } from '../../gate/reply.ts';
import { HandlerRequest, queryOf, type Inputs } from '../routes/handler-request.ts';
import type { RequestFacts } from '../../verify/request/uri.ts';
import { refusalOf } from '../../gate/access.ts';
import type { Identification } from '../../gate/identify.ts';
import { createRouter, type Match, type Matched } from '../routes/router.ts';
import type { Route, Routes } from '../routes/route.ts';
import type { Caller } from '../../verify/caller.ts';
import type { Exchange } from './exchange.ts';

export interface PipelineOptions {
  readonly clock: Clock;
  readonly bodyLimitBytes: number;
  readonly handlerTimeoutSeconds: number;
}

export type FactsReader = (exchange: Exchange) => RequestFacts | Refused;

/**
 * Returns a function from a request to its reply or refusal. From access on it may throw or reject with
 * `Refused`, `CLIENT_GONE`, `fail` or a bug. Trusts that `routesProblems` found none. Rules do
 * not cover `ownRoutes`.
 */
export function createPipeline(
  { routes, rules }: Routes,
  { readFacts, replyEarly, identify }: Omit<Identification, 'readFacts'> & { readFacts: FactsReader },
  { clock, bodyLimitBytes, handlerTimeoutSeconds }: PipelineOptions,
  ownRoutes?: readonly Route[],
  matchPath: (path: string, uri: unknown) => Matched | undefined = createRouter(routes, rules, ownRoutes),
) {
  function respond(exchange: Exchange): MaybePromise<Reply | Refused> {
    const refused = checkMessage(exchange);
    if (refused !== undefined) return refused;

    const facts = readFacts(exchange);
    if (facts instanceof Refused) return facts;

    const early = replyEarly(facts);
    if (early !== undefined) {
      exchange.crossOrigin = early.crossOrigin;
      return early.reply;
    }

    const matched = matchPath(facts.path, facts.uri);
    return matched === undefined ? refuseUnmatched(exchange) : serve(exchange, matched, facts);
  }

  function serve(
    exchange: Exchange,
    { rules, matches }: Matched,
    facts: RequestFacts,
  ): MaybePromise<Reply | Refused> {
    const { method, path } = facts;
    // RFC 9110 §9.3.2: HEAD runs the route of GET.
    const match = matches.find(({ route }) => route.method === (method === 'HEAD' ? 'GET' : method));
    exchange.route = match?.route;
    exchange.rules = rules;
    const isOpen = match === undefined || match.route.access.credentials === 'ignored';
    const identified = isOpen && rules.length === 0 ? undefined : identify(facts);

    return andThen(identified, (caller) => {
      if (caller instanceof Refused) return caller;

      exchange.caller = caller;
      const inForce = match === undefined ? rules : [...rules, match.route];
      const refused = refusalOf(inForce, caller, match !== undefined);
      if (refused !== undefined) return refused;
      if (match === undefined) return refuseUnmatched(exchange, matches);

      return run(exchange, match, path, caller);
    });
  }

  function run(exchange: Exchange, { route, parameters }: Match, path: string, caller: Caller | undefined) {
    const admitted = route.access.admit(caller);
    const nowMillis = clock.now();
    const hasInputs = route.query !== undefined || route.body !== undefined;
    const inputs = hasInputs ? readInputs(exchange, route, path) : undefined;

    return andThen(inputs, (read) => {
      const request = new HandlerRequest(exchange, path, parameters, nowMillis, admitted, read);
      const result = withinTime(exchange, route.handler(request));
      return andThen(result, (given) => replyToResult(given, route.method));
    });
  }

  async function readInputs(exchange: Exchange, { query, body }: Route, path: string) {
    const read: Inputs = {};
    if (query !== undefined) {
      read.query = await withinTime(exchange, query.check(queryOf(exchange.request, path)));
    }

    if (body !== undefined) {
      const { types, limitBytes = bodyLimitBytes } = body;
      const given = await body.read(exchange.request, exchange.response, types, limitBytes);
      read.body = await withinTime(exchange, body.check(given));
    }
    return read;
  }

  /** Aborts and abandons a handler or schema that takes too long. */
  function withinTime(exchange: Exchange, result: unknown) {
    if (!isPromise(result)) return result;

    const promise = Promise.resolve(result);
    if (handlerTimeoutSeconds === 0) return promise;

    return new Promise((resolve, reject) => {
      const cancel = clock.after(handlerTimeoutSeconds * 1000, () => {
        exchange.controller.abort();
        reject(unavailable('handler-timeout'));
      });
      promise.finally(cancel).then(resolve, reject);
    });
  }

  return respond;
}

export type Pipeline = ReturnType<typeof createPipeline>;

export const MAX_FIELDS = 200;

function checkMessage({ request: { httpVersion, rawHeaders, headers } }: Exchange) {
  const { expect, 'transfer-encoding': coding } = headers;
  // RFC 9112 §2.3, §6.1: Node accepts 0.9 and 2.0, too. HTTP/1.0 has no transfer codings.
  const isKnown = httpVersion === '1.1' || (httpVersion === '1.0' && coding === undefined);
  // RFC 9112 §6.1
  const isFramed = coding === undefined || coding.toLowerCase() === 'chunked';
  if (!isKnown || !isFramed) return refuse('malformed-http');
  if (rawHeaders.length > 2 * MAX_FIELDS) return refuse('header_fields_too_large');

  // RFC 9110 §10.1.1. Node joins repeated fields.
  const isMet = expect === undefined || expect.toLowerCase() === '100-continue';
  return isMet ? undefined : refuse('expectation_failed');
}

function refuseUnmatched({ forwardedMethod }: Exchange, matches: readonly Match[] = []) {
  if (forwardedMethod !== undefined) return refuse('route-missing');
  if (matches.length === 0) return refuse('not_found');

  const methods = matches.map(({ route }) => route.method);
  return refuseMethod(methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])));
}
