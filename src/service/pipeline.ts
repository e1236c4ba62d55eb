// The way of a request: Host → path → row → credentials → token → sender → access → handler → reply, and the one place
// where refusals and bugs become replies. Promises: every request gets exactly one reply; nothing is awaited while keys are
// held and the handler is synchronous; only a bug is a 500; nothing escapes.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { andThen, type Clock, type Later } from '../base/clock.ts';
import type { Observe } from '../base/events.ts';
import { refuseHttp, Refused } from '../base/refusal.ts';
import { createRefusalReplies, type ChallengeOptions } from '../reply/challenge.ts';
import type { Cors } from '../reply/cors.ts';
import { reply, type Reply } from '../reply/reply.ts';
import { prepareReply, type Write } from '../reply/write.ts';
import { createHostReader, fieldValues } from '../request/fields.ts';
import { targetPath } from '../request/path.ts';
import { Router } from '../routes/router.ts';
import type { PrefixRule, Row, Table } from '../routes/row.ts';
import type { Caller, Presentation, SenderCheck } from '../sender/caller.ts';
import { acceptedScheme, parseCredentials } from '../sender/credentials.ts';
import { keyIdOf, type TokenVerifier } from '../token/verify.ts';

/** What the pipeline is made of. */
export interface PipelineParts {
  readonly table: Table;
  readonly verifyToken: TokenVerifier;
  readonly checkSender: SenderCheck;
  readonly challenges: ChallengeOptions;
  readonly cors: Cors;
  /** Takes the one record of each request. */
  readonly observe: Observe;
  readonly clock: Clock;
  /** Whether every reply shall close its connection. */
  readonly isStopping: () => boolean;
}

export interface Pipeline {
  /**
   * Works out the reply and gives what writes it; `undefined` when the reply comes later and writes itself. `refused` is
   * what the listener has already found wrong. Never throws.
   */
  prepare(request: IncomingMessage, response: ServerResponse, refused?: Refused): Write | undefined;
  /** The reply to bytes that never became a request. */
  refuse(refused: Refused): Reply;
}

/** What was learnt of a request on its way. */
interface Exchange {
  readonly request: IncomingMessage;
  isPreflight: boolean;
  row: Row | undefined;
  kid: string | undefined;
  freshNonce: string | undefined;
}

/** Builds the pipeline. Throws an `Error` when rows overlap. */
export function createPipeline(parts: PipelineParts): Pipeline {
  const { table, verifyToken, checkSender, challenges, cors, observe, clock, isStopping } = parts;
  const router = new Router<Row, PrefixRule>(table.rows, table.rules);
  const replyToRefusal = createRefusalReplies(challenges);
  const readHost = createHostReader();

  /** Throws `Refused`, or rejects with it. */
  function respond(exchange: Exchange): Later<Reply> {
    const { method = '', url = '', rawHeaders } = exchange.request;
    const host = readHost(rawHeaders);
    const path = targetPath(url);

    const preflight = cors.preflight(exchange.request);
    exchange.isPreflight = preflight !== undefined;
    if (preflight !== undefined) return preflight;

    const place = router.find(path);
    if (place === undefined) throw refuseHttp('not_found');

    exchange.row = place.row;
    // RFC 9110 §9.3.2: HEAD goes the way of GET.
    const row = method === 'GET' || method === 'HEAD' ? place.row : undefined;
    const readsCredentials =
      place.rule !== undefined || (row !== undefined && row.access.credentials !== 'ignored');
    const identified = readsCredentials ? identify(exchange, { method, host, path, rawHeaders }) : undefined;

    return andThen(identified, (caller) => {
      place.rule?.access.admit(caller);
      if (row === undefined) throw refuseHttp(place.row === undefined ? 'not_found' : 'method_not_allowed');

      return andThen(row.run(caller, place.parameters, clock.now()), (body) => {
        if (body instanceof Refused) throw body;
        return reply(200, body);
      });
    });
  }

  /** Nobody is identified when there are no credentials. */
  function identify(exchange: Exchange, presentation: Presentation): Later<Caller | undefined> {
    const credentials = parseCredentials(presentation.rawHeaders, challenges.dpopMode);
    if (credentials === undefined) return undefined;

    const checked = andThen(verifyToken(credentials.token), (token) => {
      exchange.kid = keyIdOf(token);
      return checkSender(token, credentials, presentation, clock.now());
    });
    return andThen(checked, (caller) => {
      exchange.freshNonce = caller.freshNonce;
      return caller;
    });
  }

  function replyToFailure(failure: unknown, exchange?: Exchange): Reply {
    const row = exchange?.row;
    if (!(failure instanceof Refused)) {
      observe({ row, status: 500, reason: 'bug', failure });
      return reply(500, { error: 'server_error', message: 'Internal Server Error' });
    }

    const { refusal, findings } = failure;
    const [authorization = ''] = fieldValues(exchange?.request.rawHeaders ?? [], 'authorization');
    const refusalReply = replyToRefusal(refusal, acceptedScheme(authorization, challenges.dpopMode));
    const kid = findings.kid ?? exchange?.kid;
    observe({ row, status: refusalReply.status, reason: refusal.reason, kid });
    return refusalReply;
  }

  function prepare(request: IncomingMessage, response: ServerResponse, refused?: Refused): Write | undefined {
    const exchange: Exchange = {
      request,
      isPreflight: false,
      row: undefined,
      kid: undefined,
      freshNonce: undefined,
    };

    function finish(result: Reply, freshNonce = exchange.freshNonce): Write {
      const nonce = freshNonce === undefined ? [] : ['DPoP-Nonce', freshNonce];
      const fields = exchange.isPreflight ? [] : [...cors.headers(request), ...nonce];
      return prepareReply(request, response, result, fields, isStopping());
    }

    function fail(failure: unknown): Write {
      const freshNonce = failure instanceof Refused ? failure.findings.freshNonce : undefined;
      try {
        return finish(replyToFailure(failure, exchange), freshNonce);
      } catch {
        // Nobody else would end this connection.
        return () => response.destroy();
      }
    }

    try {
      if (refused !== undefined) throw refused;

      const result = respond(exchange);
      if (!(result instanceof Promise)) return finish(result);

      void result
        .then(finish)
        .catch(fail)
        .then((write) => write());
      return undefined;
    } catch (failure) {
      return fail(failure);
    }
  }

  function refuse(refused: Refused): Reply {
    const refusalReply = replyToFailure(refused);
    return { ...refusalReply, fields: [...refusalReply.fields, ...cors.headers(undefined)] };
  }

  return { prepare, refuse };
}
