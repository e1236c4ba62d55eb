// The way of a request: head → Host → path → (metadata) → (preflight) → rules and route → credentials →
// token → sender → access → query and body → handler → reply. Promises: nothing is awaited but keys that
// are not held, the word of a shared replay store, what the route takes, and a handler's promise; nothing
// of a body is read, and no handler runs, before access. Does not write: responder.ts does, which takes
// every failure too.
import { andThen, isLater, type MaybePromise } from '../../verify/base/clock.ts';
import { refuse, Refused, refuseMethod, unavailable } from '../../verify/base/refusal.ts';
import { HandlerReply, noContent, replyToResult } from '../routes/handler-reply.ts';
import type { Reply } from '../../gate/reply.ts';
import { readBody } from '../routes/body.ts';
import { Incoming } from '../routes/incoming.ts';
import type { RequestFacts } from '../../verify/request/uri.ts';
import { refusalOf } from '../../gate/access.ts';
import { createRouter, type Place } from '../routes/router.ts';
import type { Route, Routes } from '../routes/route.ts';
import type { Caller } from '../../verify/caller.ts';
import type { Exchange } from './exchange.ts';
import type { Front } from '../../gate/front.ts';

const NO_CONTENT = noContent().reply;

/**
 * For routes in which `routesProblems` finds nothing, and own ones that no rule closes: gives the reply to a
 * request, or why it is refused. Throws, or rejects with, what turns it away once it may be read: `Refused`,
 * `ClientGone`, `fail`, a bug.
 */
export function createPipeline({ routes, rules }: Routes, front: Front, ownRoutes?: readonly Route[]) {
  const findPlace = createRouter(routes, rules, ownRoutes);
  const { clock, settings } = front;
  const { bodyLimitBytes, handlerTimeoutSeconds } = settings;

  function respond(exchange: Exchange): MaybePromise<Reply | Refused> {
    const refused = headRefusal(exchange);
    if (refused !== undefined) return refused;

    const facts = front.present(exchange);
    if (facts instanceof HandlerReply) return facts.reply;
    if (facts instanceof Refused) return facts;

    const permission = front.cors.forSending(facts);
    if (permission !== undefined) {
      exchange.crossOrigin = permission;
      return NO_CONTENT;
    }

    const place = findPlace(facts.path);
    return place === undefined ? refuse('not_found') : serve(exchange, place, facts);
  }

  /** Who asks, whether they may, and then the route. */
  function serve(exchange: Exchange, place: Place, facts: RequestFacts): MaybePromise<Reply | Refused> {
    const { rules, matches } = place;
    const { method, path } = facts;
    // RFC 9110 §9.3.2: HEAD goes the way of GET.
    const match = matches.find(({ route }) => route.method === (method === 'HEAD' ? 'GET' : method));
    exchange.route = match?.route;
    exchange.rules = rules;
    const isOpen = match === undefined || match.route.access.credentials === 'ignored';
    const isCallerWanted = rules.length > 0 || !isOpen;
    const identified = isCallerWanted ? front.identify(exchange, facts) : undefined;

    return andThen(identified, (caller) => {
      if (caller instanceof Refused) return caller;

      const deciding = match === undefined ? rules : [...rules, match.route];
      const refused = refusalOf(deciding, caller, match !== undefined);
      if (refused !== undefined) return refused;
      if (match === undefined) return refuseUnmatched(matches);

      const { route, parameters } = match;
      const admitted = route.access.admit(caller);
      return run(exchange, route, new Incoming(exchange, path, parameters, clock.now(), admitted));
    });
  }

  /** Query and body, then the handler, then its reply. */
  function run(exchange: Exchange, route: Route, incoming: Incoming<Caller | undefined>) {
    const taken = (route.query ?? route.body) ? take(exchange, route, incoming) : undefined;
    return andThen(taken, () =>
      andThen(withinTime(exchange, route.handler(incoming)), (given) => replyToResult(given, route.method)),
    );
  }

  /** Rejects with `Refused`, or with `ClientGone`. */
  async function take(exchange: Exchange, { query, body }: Route, incoming: Incoming) {
    if (query !== undefined) {
      incoming.query = await withinTime(exchange, query.judge(incoming.query));
    }
    if (body === undefined) return;

    const { types, limitBytes = bodyLimitBytes } = body;
    const given = await readBody(exchange.request, exchange.response, types, limitBytes);
    incoming.body = await withinTime(exchange, body.judge(given));
  }

  /** A handler, or a schema, that takes too long is told to give up, and not awaited any more. */
  function withinTime(exchange: Exchange, result: unknown) {
    if (!isLater(result)) return result;

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

/** A request with more is refused: each costs memory for as long as it is under way. */
export const MAX_FIELDS = 200;

/** What can be wrong with a request before it is looked at. */
function headRefusal({ request: { httpVersion, rawHeaders, headers } }: Exchange) {
  const { expect, 'transfer-encoding': coding } = headers;
  // RFC 9112 §2.3, §6.1: Node lets 0.9 and 2.0 pass in a request line, and HTTP/1.0 has no transfer coding.
  const isKnown = httpVersion === '1.1' || (httpVersion === '1.0' && coding === undefined);
  // RFC 9112 §6.1: of the others none is understood.
  const isFramed = coding === undefined || coding.toLowerCase() === 'chunked';
  if (!isKnown || !isFramed) return refuse('malformed-http');
  if (rawHeaders.length > 2 * MAX_FIELDS) return refuse('header_fields_too_large');

  // RFC 9110 §10.1.1: any other expectation may be refused; so is a repeated field, which Node joins.
  const isMet = expect === undefined || expect.toLowerCase() === '100-continue';
  return isMet ? undefined : refuse('expectation_failed');
}

function refuseUnmatched(matches: Place['matches']) {
  if (matches.length === 0) return refuse('not_found');

  const methods = matches.map(({ route }) => route.method);
  return refuseMethod(methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])));
}
