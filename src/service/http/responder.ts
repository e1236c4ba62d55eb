// Request → reply, and writing it: the one place where every failure becomes a reply. Promises: every
// request gets exactly one reply unless its client has gone, a bug is a 500 that tells nothing, and nothing
// escapes.
import { isLater, type MaybePromise } from '../../verify/base/clock.ts';
import { ClientGone, Refused } from '../../verify/base/refusal.ts';
import type { Reply } from '../../gate/reply.ts';
import { decideEnd, hangUp, isEnding, isGone, writeReply } from './write.ts';
import type { RequestHead, RequestRecord } from '../../gate/record.ts';
import type { Replies } from '../../gate/replies.ts';
import { HandlerReply } from '../routes/handler-reply.ts';
import type { Exchange } from './exchange.ts';
import type { Observer } from '../../gate/observe.ts';
import type { Pipeline } from './pipeline.ts';

/** What `createResponder` gives. */
export type Responder = ReturnType<typeof createResponder>;

/** How far the end of a service has come. */
export interface Phase {
  /** The end has begun: from then on it is not ready. */
  isStopping: boolean;
  /** No more connections are taken: from then on every reply closes its connection. */
  isClosing: boolean;
}

export function createResponder(pipeline: Pipeline, replies: Replies, observer: Observer, phase: Phase) {
  /** None when nobody is left to be told. Never throws. */
  function replyTo(exchange: Exchange, failure: unknown): Reply | undefined {
    // A handler that has given up because its client has left has no fault.
    const isOver = ClientGone.isGenuine(failure) || (exchange.hasLeft && isAbort(failure));
    if (isOver) return undefined;
    if (!HandlerReply.isGenuine(failure) || !failure.isThrowable) {
      return replies.replyToFailure(failure, exchange);
    }

    exchange.reason = 'handler';
    return failure.reply;
  }

  /**
   * Writes the reply, or without one ends the connection; then tells of it, if there is anything to tell.
   * Never throws.
   */
  function write(exchange: Exchange, reply: Reply | undefined): void {
    const { request, response } = exchange;
    let status: number | null = null;
    try {
      const more = replies.fieldsBeside(exchange, request.headers.origin);
      if (reply !== undefined) writeReply(request, response, reply, more, phase.isClosing);
      else if (!isGone(request, response)) hangUp(response);
      if (response.headersSent) status = response.statusCode;
    } catch (failure) {
      // A handler may have given its bytes away since. The bug is noted; it is too late for a reply, and the
      // other answers of this turn shall not suffer.
      replies.replyToFailure(failure, exchange);
      hangUp(response);
    }
    if (observer.isWatching || exchange.reason !== undefined) observer.observe(exchange, status);
  }

  /** Works out the reply, unless nobody could be told. Never throws, nor rejects. */
  function work(exchange: Exchange): MaybePromise<Reply | undefined> {
    const { request, response } = exchange;
    // While it waited for its turn. RFC 9112 §9.6: nothing behind the last answer is carried out.
    if (isGone(request, response) || isEnding(request.socket)) return undefined;

    const reply = runPipeline(exchange);
    // Decided now, since the others of this turn are worked out before it is written.
    const isLast = phase.isClosing || response.shouldKeepAlive === false;
    if (!isLater(reply)) decideEnd(request, isLast || reply?.closes);
    return reply;
  }

  function runPipeline(exchange: Exchange): MaybePromise<Reply | undefined> {
    const settle = (reply: Reply | Refused) =>
      reply instanceof Refused ? replies.replyToFailure(reply, exchange) : reply;

    try {
      const reply = pipeline(exchange);
      if (!isLater(reply)) return settle(reply);

      return reply.then(settle).catch((failure: unknown) => replyTo(exchange, failure));
    } catch (failure) {
      return replyTo(exchange, failure);
    }
  }

  /**
   * The reply to bytes that never became a request, or to a request that Node hands over with its socket.
   */
  function turnAway(refused: Refused, request: RequestHead = { rawHeaders: [] }) {
    const record: RequestRecord = { request, arrivedAt: observer.noteArrival() };
    return replies.finish(replies.replyToFailure(refused, record), record);
  }

  return { noteArrival: observer.noteArrival, work, write, turnAway };
}

/** Whether the handler has passed on what it was told by its signal. */
function isAbort(failure: unknown) {
  try {
    return Object(failure).name === 'AbortError';
  } catch {
    // What was thrown may run code of its own when it is asked.
    return false;
  }
}
