// Turns every refusal and error into a reply, and writes replies. Promises: a request gets one
// response, unless its connection ends first; a bug is a 500 that reveals nothing; no error escapes.
import { andThen, isPromise, type MaybePromise } from '../../verify/base/clock.ts';
import type { Refused } from '../../verify/base/refusal.ts';
import { recordEnd, hangUp, isEnding, isGone, writeReply } from '../connection/write.ts';
import type { Outcome, RawRequest, Settled } from '../../gate/record.ts';
import type { Replies } from '../../gate/replies/refusal-replies.ts';
import { CLIENT_GONE } from '../routes/body-refusal.ts';
import { HandlerReply } from '../routes/handler-result.ts';
import type { Exchange } from './exchange.ts';
import type { Observer } from '../../gate/observe.ts';
import type { Pipeline } from './pipeline.ts';

export type Responder = ReturnType<typeof createResponder>;

export function createResponder(pipeline: Pipeline, replies: Replies, observer: Observer) {
  /** Without a reply when the client has gone. Never throws. */
  function settle(exchange: Exchange, outcome: Outcome): Settled {
    if (outcome.reply !== undefined) return outcome;

    const { known, refused } = outcome;
    // A handler may rethrow its signal's abort.
    const isOver = refused === CLIENT_GONE || (exchange.hasLeft && isAbort(refused));
    if (isOver) return { known };
    if (!HandlerReply.isGenuine(refused) || !refused.isThrowable) {
      return replies.settle(outcome, exchange.request);
    }

    return { known, reply: refused.reply, reason: 'handler' };
  }

  /** Writes the reply, or without one ends the connection, and observes. Never throws. */
  function write(exchange: Exchange, settled: Settled) {
    const { request, response } = exchange;
    let written = settled;
    let status: number | null = null;

    try {
      const more = replies.fieldsBeside(settled, request.headers.origin);
      if (settled.reply !== undefined) writeReply(request, response, settled.reply, more);
      else if (!isGone(request, response)) hangUp(response);
      if (response.headersSent) status = response.statusCode;
    } catch (refused) {
      // Should Node refuse the reply, the turn's other responses go on.
      written = replies.settle({ known: settled.known, refused }, request);
      hangUp(response);
    }
    if (observer.isWatching || written.reason !== undefined) observer.observe(exchange, written, status);
  }

  /** Computes the reply unless nobody would get it. Never throws or rejects. */
  function work(exchange: Exchange): MaybePromise<Settled> {
    const { request, response } = exchange;
    // RFC 9112 §9.6: nothing runs after the last response.
    if (isGone(request, response) || isEnding(request.socket)) return {};

    const settled = andThen(runPipeline(exchange), (outcome) => settle(exchange, outcome));
    // Recorded now: the turn's other replies are computed before any is written.
    if (!isPromise(settled)) recordEnd(request, response, settled.reply?.closes);
    return settled;
  }

  function runPipeline(exchange: Exchange): MaybePromise<Outcome> {
    try {
      return pipeline(exchange);
    } catch (refused) {
      return { refused };
    }
  }

  /** For bytes that are not a request, or a request that Node hands over with its socket. */
  const turnAway = (refused: Refused, request: RawRequest = { rawHeaders: [] }) =>
    replies.finish({ refused }, request, observer.noteArrival());

  return { noteArrival: observer.noteArrival, work, write, turnAway };
}

function isAbort(error: unknown) {
  try {
    return Object(error).name === 'AbortError';
  } catch {
    return false;
  }
}
