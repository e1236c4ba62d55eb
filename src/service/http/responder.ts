// Turns every refusal and error into a reply, and writes replies. Promises: a request gets one
// response, unless its connection ends first; a bug is a 500 that reveals nothing; no error escapes.
import { isPromise, type MaybePromise } from '../../verify/base/clock.ts';
import { Refused } from '../../verify/base/refusal.ts';
import type { Reply } from '../../gate/reply.ts';
import { recordEnd, hangUp, isEnding, isGone, writeReply } from './write.ts';
import type { RawRequest, RequestRecord } from '../../gate/record.ts';
import type { Replies } from '../../gate/replies.ts';
import { CLIENT_GONE } from '../routes/body-refusal.ts';
import { HandlerReply } from '../routes/handler-result.ts';
import type { Exchange } from './exchange.ts';
import type { Observer } from '../../gate/observe.ts';
import type { Pipeline } from './pipeline.ts';

export type Responder = ReturnType<typeof createResponder>;

export function createResponder(pipeline: Pipeline, replies: Replies, observer: Observer) {
  /** `undefined` when the client has gone. Never throws. */
  function replyTo(exchange: Exchange, error: unknown): Reply | undefined {
    // A handler may rethrow its signal's abort.
    const isOver = error === CLIENT_GONE || (exchange.hasLeft && isAbort(error));
    if (isOver) return undefined;
    if (!HandlerReply.isGenuine(error) || !error.isThrowable) {
      return replies.replyToError(error, exchange);
    }

    exchange.reason = 'handler';
    return error.reply;
  }

  /** Writes the reply, or without one ends the connection, and observes. Never throws. */
  function write(exchange: Exchange, reply: Reply | undefined) {
    const { request, response } = exchange;
    let status: number | null = null;
    try {
      const more = replies.fieldsBeside(exchange, request.headers.origin);
      if (reply !== undefined) writeReply(request, response, reply, more);
      else if (!isGone(request, response)) hangUp(response);
      if (response.headersSent) status = response.statusCode;
    } catch (error) {
      // A handler may have transferred the reply's ArrayBuffer. The turn's other responses go on.
      replies.replyToError(error, exchange);
      hangUp(response);
    }
    if (observer.isWatching || exchange.reason !== undefined) observer.observe(exchange, status);
  }

  /** Computes the reply unless nobody would get it. Never throws or rejects. */
  function work(exchange: Exchange): MaybePromise<Reply | undefined> {
    const { request, response } = exchange;
    // RFC 9112 §9.6: nothing runs after the last response.
    if (isGone(request, response) || isEnding(request.socket)) return undefined;

    const reply = runPipeline(exchange);
    // Recorded now: the turn's other replies are computed before any is written.
    if (!isPromise(reply)) recordEnd(request, response, reply?.closes);
    return reply;
  }

  function runPipeline(exchange: Exchange): MaybePromise<Reply | undefined> {
    const settle = (reply: Reply | Refused) =>
      reply instanceof Refused ? replies.replyToError(reply, exchange) : reply;

    try {
      const reply = pipeline(exchange);
      if (!isPromise(reply)) return settle(reply);

      return reply.then(settle).catch((error: unknown) => replyTo(exchange, error));
    } catch (error) {
      return replyTo(exchange, error);
    }
  }

  /** For bytes that are not a request, or a request that Node hands over with its socket. */
  function turnAway(refused: Refused, request: RawRequest = { rawHeaders: [] }) {
    const record: RequestRecord = { request, arrivedAtMillis: observer.noteArrival() };
    return replies.finish(replies.replyToError(refused, record), record);
  }

  return { noteArrival: observer.noteArrival, work, write, turnAway };
}

function isAbort(error: unknown) {
  try {
    return Object(error).name === 'AbortError';
  } catch {
    return false;
  }
}
