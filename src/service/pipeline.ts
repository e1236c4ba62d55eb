// The way of a request: Host → path → row → credentials → token → sender → access → query and body → handler
// → reply. Promises: nothing is awaited while keys are held and the handler is synchronous; nothing of a body
// is read, and no handler runs, before access. Does not write: responder.ts does, which also takes every
// failure.
import { andThen, type Clock, type Later } from '../base/clock.ts';
import { refuseHttp, refuseMethod, unavailable, type Refused } from '../base/refusal.ts';
import type { Cors } from '../reply/cors.ts';
import { replyToResult } from '../reply/handler-reply.ts';
import type { Reply } from '../reply/reply.ts';
import { Incoming } from '../request/incoming.ts';
import { targetPath } from '../request/path.ts';
import { Router } from '../routes/router.ts';
import type { AdmittedRequest, PrefixRule, Row, Table } from '../routes/row.ts';
import type { Exchange } from './exchange.ts';
import type { Front } from './front.ts';

/** What the pipeline is made of. */
export interface PipelineParts {
  readonly table: Table;
  readonly front: Front;
  readonly cors: Cors;
  readonly clock: Clock;
  readonly bodyLimitBytes: number;
  /** 0 lets a handler take as long as it likes. */
  readonly handlerTimeoutMillis: number;
}

/**
 * Gives the reply to a request. Throws what turns it away, or rejects with it: `Refused`, `ClientGone`,
 * `fail`, a bug.
 */
export type Pipeline = (exchange: Exchange) => Later<Reply>;

/** Builds the pipeline for a table in which `tableProblems` finds nothing. */
export function createPipeline(parts: PipelineParts): Pipeline {
  const { table, front, cors, clock } = parts;
  const router = new Router<Row, PrefixRule>(table.rows, table.rules);

  function respond(exchange: Exchange): Later<Reply> {
    const { method = '', url = '', rawHeaders } = exchange.request;
    const host = front.readHost(rawHeaders);
    const path = targetPath(url);

    const preflight = cors.preflight(exchange.request);
    exchange.isPreflight = preflight !== undefined;
    if (preflight !== undefined) return preflight;

    const place = router.find(path);
    if (place === undefined) throw refuseHttp('not_found');

    // RFC 9110 §9.3.2: HEAD goes the way of GET.
    const rowMethod = method === 'HEAD' ? 'GET' : method;
    const match = place.matches.find(({ row }) => row.method === rowMethod);
    exchange.row = match?.row;
    const accesses = [place.rule?.access, match?.row.access];
    const readsCredentials = accesses.some(
      (access) => access !== undefined && access.credentials !== 'ignored',
    );
    const presentation = { method, host, path, rawHeaders };
    const identified = readsCredentials ? front.identify(exchange, presentation) : undefined;

    return andThen(identified, (caller) => {
      place.rule?.access.admit(caller);
      if (match === undefined) throw refuseUnmatched(place.matches);

      const incoming = new Incoming(exchange, path, match.parameters, clock.now());
      return run(exchange, match.row, match.row.admit(caller, incoming));
    });
  }

  /** Query and body, then the handler, then its reply. */
  function run(exchange: Exchange, row: Row, admitted: AdmittedRequest): Later<Reply> {
    return andThen(admitted.take(parts.bodyLimitBytes), () => {
      const result = withinTime(exchange, admitted.handle());
      return andThen(result, (given) => replyToResult(given, row.method));
    });
  }

  /** A handler that takes too long is told to give up, and not awaited any more. */
  function withinTime(exchange: Exchange, result: Later<unknown>): Later<unknown> {
    if (!(result instanceof Promise) || parts.handlerTimeoutMillis === 0) return result;

    return new Promise((resolve, reject) => {
      const cancel = clock.after(parts.handlerTimeoutMillis, () => {
        exchange.giveUp();
        reject(unavailable('handler-timeout', 1));
      });
      result.finally(cancel).then(resolve, reject);
    });
  }

  return respond;
}

function refuseUnmatched(matches: readonly { readonly row: Row }[]): Refused {
  if (matches.length === 0) return refuseHttp('not_found');

  const methods = matches.map(({ row }) => row.method);
  return refuseMethod(methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])));
}
