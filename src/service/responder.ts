// Request → what writes its reply: the one place where every failure becomes a reply. Promises: every request
// gets exactly one reply, only a bug is a 500, and nothing escapes.
import { isLater } from '../base/clock.ts';
import { ClientGone, type Refused } from '../base/refusal.ts';
import type { Reply } from '../reply/reply.ts';
import { hangUp, isGone, prepareReply, type Write } from '../reply/write.ts';
import type { Table } from '../routes/row.ts';
import type { Exchange, Head } from './exchange.ts';
import type { Front } from './front.ts';
import { createPipeline } from './pipeline.ts';

export type Responder = ReturnType<typeof createResponder>;

/** For a table in which `tableProblems` finds nothing. */
export function createResponder(table: Table, front: Front) {
  const pipeline = createPipeline(table, front);

  /** What is done, and then what is told of it, if there is anything to tell. */
  function telling(exchange: Exchange, write: Write): Write {
    return () => {
      let isWritten = true;
      try {
        write();
      } catch (failure) {
        isWritten = false;
        // A handler may have given its bytes away since. The other answers of this turn shall not suffer.
        front.replyToFailure(failure, exchange);
        hangUp(exchange.response);
      }
      if (!front.isWatching && exchange.reason === undefined) return;

      const { headersSent, statusCode } = exchange.response;
      front.observe(exchange, isWritten && headersSent ? statusCode : null);
    };
  }

  function finish(exchange: Exchange, reply: Reply): Write {
    const { request, response } = exchange;
    const more = front.fieldsBeside(exchange, request.headers.origin);
    return telling(exchange, prepareReply(request, response, reply, more, front.isStopping));
  }

  function fail(exchange: Exchange, failure: unknown): Write {
    const leave = telling(exchange, () => hangUp(exchange.response));
    try {
      // Nobody is left to be told, and a handler that has given up for that reason has no fault.
      if (failure instanceof ClientGone || hasGivenUp(exchange, failure)) return leave;

      return finish(exchange, front.replyToFailure(failure, exchange));
    } catch {
      // Nobody else would end this connection.
      return leave;
    }
  }

  /**
   * Works out the reply and gives what writes it; `undefined` when the reply comes later and writes itself.
   * Never throws.
   */
  function prepare(exchange: Exchange): Write | undefined {
    const { request, response } = exchange;
    // While it waited for its turn.
    if (isGone(request, response)) return telling(exchange, () => {});

    try {
      const reply = pipeline(exchange);
      if (!isLater(reply)) return finish(exchange, reply);

      void reply
        .then((ready) => finish(exchange, ready))
        .catch((failure: unknown) => fail(exchange, failure))
        .then((write) => write())
        .catch(() => hangUp(response));
      return undefined;
    } catch (failure) {
      return fail(exchange, failure);
    }
  }

  /** The reply to bytes that never became a request, or to a request that Node hands over with its socket. */
  const refuse = (refused: Refused, request: Head = { rawHeaders: [] }) =>
    front.turnAway(refused, { request, arrivedAt: front.begin() });

  return { begin: front.begin, prepare, refuse };
}

/** Whether the handler has passed on what it was told by its signal. */
const hasGivenUp = ({ request, response }: Exchange, failure: unknown) =>
  isGone(request, response) && Object(failure).name === 'AbortError';
