// The steps of a request: form → Host → path → early reply → rules and route → credentials → token → sender →
// access → query and body → handler → reply. Promises: awaits only missing keys, a shared replay store,
// inputs and a handler's promise; reads no body and runs no handler before access. Does not write, or turn
// errors into replies: responder.ts does.
import { andThen, isPromise, type Clock, type MaybePromise } from '../../verify/base/clock.ts';
import { refuse, Refused, refuseMethod, unavailable } from '../../verify/base/refusal.ts';
import { replyToResult } from '../routes/handler-result.ts';
import { HandlerRequest, queryOf, type Inputs } from '../routes/handler-request.ts';
import type { RequestFacts } from '../../verify/request/uri.ts';
import { refusalOf } from '../../gate/rules/access.ts';
import type { Identification } from '../../gate/identify.ts';
import type { Known, Outcome } from '../../gate/record.ts';
import { createRouter, type Match, type Matched } from '../routes/router.ts';
import type { Route, Routes } from '../routes/route.ts';
import type { Caller } from '../../verify/caller.ts';
import type { Exchange } from './exchange.ts';
import { checkMessage } from './message.ts';

interface PipelineOptions {
  readonly clock: Clock;
  readonly bodyLimitBytes: number;
  readonly handlerTimeoutSeconds: number;
}

export type FactsReader = (request: Exchange['request']) => RequestFacts | Refused;

/**
 * Returns a function from a request to its outcome; it throws only for a bug. Trusts that `routesProblems`
 * found none. Rules do not cover `ownRoutes`.
 */
export function createPipeline(
  { routes, rules }: Routes,
  { readFacts, replyEarly, identify }: Omit<Identification, 'readFacts'> & { readFacts: FactsReader },
  { clock, bodyLimitBytes, handlerTimeoutSeconds }: PipelineOptions,
  ownRoutes?: readonly Route[],
  matchPath: (path: string, uri: unknown) => Matched | undefined = createRouter(routes, rules, ownRoutes),
) {
  function respond(exchange: Exchange): MaybePromise<Outcome> {
    const refused = checkMessage(exchange.request);
    if (refused !== undefined) return { refused };

    const facts = readFacts(exchange.request);
    if (facts instanceof Refused) return { refused: facts };

    const early = replyEarly(facts);
    if (early !== undefined) return { ...early, known: { ...early.known, facts } };

    const matched = matchPath(facts.path, facts.uri);
    return matched === undefined
      ? { known: { facts }, refused: refuseUnmatched(facts) }
      : serve(exchange, matched, facts);
  }

  function serve(
    exchange: Exchange,
    { rules, matches }: Matched,
    facts: RequestFacts,
  ): MaybePromise<Outcome> {
    const { method, path } = facts;
    const match = matchFor(method, matches);
    const route = match?.route;
    const isOpen = route === undefined || route.access.credentials === 'ignored';
    let caller: Caller | undefined;
    const known = (): Known => ({ facts, route, rules, caller });
    const refuseFor = (refused: unknown) => ({ known: known(), refused });

    function respondTo(identified: Caller | Refused | undefined): MaybePromise<Outcome> {
      if (identified instanceof Refused) return refuseFor(identified);

      caller = identified;
      const inForce = route === undefined ? rules : [...rules, route];
      const refused = refusalOf(inForce, caller, route !== undefined);
      if (refused !== undefined) return refuseFor(refused);
      if (match === undefined) return refuseFor(refuseUnmatched(facts, matches));

      const result = run(exchange, match, path, caller);
      return andThen(result, (reply) => ({ known: known(), reply }));
    }

    try {
      const identified = isOpen && rules.length === 0 ? undefined : identify(facts);
      const outcome = andThen(identified, respondTo);
      return isPromise(outcome) ? outcome.catch(refuseFor) : outcome;
    } catch (error) {
      return refuseFor(error);
    }
  }

  /** May throw or reject with `Refused`, `CLIENT_GONE`, `fail` or a bug. */
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

/** RFC 9110 §9.3.2: HEAD runs the route of GET. */
const matchFor = (method: string, matches: readonly Match[]) =>
  matches.find(({ route }) => route.method === (method === 'HEAD' ? 'GET' : method));

function refuseUnmatched({ uri }: RequestFacts, matches: readonly Match[] = []) {
  if (uri !== undefined) return refuse('route-missing');
  if (matches.length === 0) return refuse('not_found');

  const methods = matches.map(({ route }) => route.method);
  return refuseMethod(methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])));
}
