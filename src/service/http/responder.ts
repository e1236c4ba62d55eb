// Request → reply, and writing it: the one place where every failure becomes a reply. Promises: every
// request gets exactly one reply unless its client has gone, a bug is a 500 that tells nothing, and nothing
// escapes.
import { isLater, type MaybePromise } from '../../verify/base/clock.ts';
import { ClientGone, Refused } from '../../verify/base/refusal.ts';
import type { Reply } from '../../gate/reply.ts';
import { decideEnd, hangUp, isEnding, isGone, writeReply } from './write.ts';
import type { Route, Routes } from '../routes/route.ts';
import type { Exchange, Head } from './exchange.ts';
import type { Front } from '../../gate/front.ts';
import { createPipeline } from './pipeline.ts';

/** What `createResponder` gives. */
export type Responder = ReturnType<typeof createResponder>;

/** For routes in which `routesProblems` finds nothing, and own ones that no rule closes. */
export function createResponder(routes: Routes, front: Front, ownRoutes?: readonly Route[]) {
  const pipeline = createPipeline(routes, front, ownRoutes);

  /** None when nobody is left to be told. Never throws. */
  function replyTo(exchange: Exchange, failure: unknown): Reply | undefined {
    // A handler that has given up because its client has left has no fault.
    const isOver = ClientGone.isGenuine(failure) || (exchange.hasLeft && isAbort(failure));
    return isOver ? undefined : front.replyToFailure(failure, exchange);
  }

  /**
   * Writes the reply, or without one ends the connection; then tells of it, if there is anything to tell.
   * Never throws.
   */
  function write(exchange: Exchange, reply: Reply | undefined): void {
    const { request, response } = exchange;
    let status: number | null = null;
    try {
      const more = front.fieldsBeside(exchange, request.headers.origin);
      if (reply !== undefined) writeReply(request, response, reply, more, front.isClosing);
      else if (!isGone(request, response)) hangUp(response);
      if (response.headersSent) status = response.statusCode;
    } catch (failure) {
      // A handler may have given its bytes away since. The bug is noted; it is too late for a reply, and the
      // other answers of this turn shall not suffer.
      front.replyToFailure(failure, exchange);
      hangUp(response);
    }
    if (front.isWatching || exchange.reason !== undefined) front.observe(exchange, status);
  }

  /** Works out the reply, unless nobody could be told. Never throws, nor rejects. */
  function work(exchange: Exchange): MaybePromise<Reply | undefined> {
    const { request, response } = exchange;
    // While it waited for its turn. RFC 9112 §9.6: nothing behind the last answer is carried out.
    if (isGone(request, response) || isEnding(request.socket)) return undefined;

    const reply = runPipeline(exchange);
    // Decided now, since the others of this turn are worked out before it is written.
    const isLast = front.isClosing || response.shouldKeepAlive === false;
    if (!isLater(reply)) decideEnd(request, isLast || reply?.closes);
    return reply;
  }

  function runPipeline(exchange: Exchange): MaybePromise<Reply | undefined> {
    const settle = (reply: Reply | Refused) =>
      reply instanceof Refused ? front.replyToFailure(reply, exchange) : reply;

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
  const turnAway = (refused: Refused, request: Head = { rawHeaders: [] }) =>
    front.turnAway(refused, { request, arrivedAt: front.noteArrival() });

  return { noteArrival: front.noteArrival, work, write, turnAway };
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
