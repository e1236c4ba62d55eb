// Writes the response to each request. Promises: a request gets one response, unless its connection ends
// first; a bug is a 500 that reveals nothing; no error escapes.
import { andThen, attempt, type Clock } from '../../verify/base/clock.ts';
import type { Refused } from '../../verify/base/refusal.ts';
import type { RawRequest } from '../../verify/request/facts.ts';
import type { Observer } from '../../gate/observe.ts';
import { extendRecord, turnAway, type RequestRecord } from '../../gate/record.ts';
import type { Reply } from '../../gate/replies/reply.ts';
import type { Replies } from '../../gate/replies/refusal-replies.ts';
import { cutOff, hangUp, writeReply, writeStreamHead } from '../connection/write.ts';
import { isResponseReply, type ResponseReply } from '../fetch/response.ts';
import { sendResponse } from '../fetch/stream.ts';
import type { Exchange } from './exchange.ts';
import { recordThrown, type Pipeline } from './pipeline.ts';

export interface Responder {
  /** Returns the time, or 0 when it is not needed. */
  readonly startTiming: () => number;
  /** Never throws. */
  readonly respond: (exchange: Exchange) => void;
  /** For bytes that are not a request, or a request that Node hands over with its socket. */
  readonly refuseConnection: (refused: Refused, request: RawRequest) => Reply;
}

export function createResponder(
  pipeline: Pipeline,
  replies: Replies,
  observer: Observer,
  clock: Clock,
): Responder {
  const { startTiming } = observer;

  /** Without a reply, ends the connection. */
  function writeOrHangUp(exchange: Exchange, record: RequestRecord) {
    const { request, response } = exchange;
    if (record.reply === undefined && record.reason === undefined) {
      if (!exchange.isGone) hangUp(response);
      return record;
    }

    const replied = replies.complete(record, request);
    writeReply(exchange, replied.reply, replies.extraFields(record, request.headers.origin));
    return replied;
  }

  /** Writes the response, and observes. Never throws. */
  function write(exchange: Exchange, record: RequestRecord) {
    const { request, response } = exchange;
    let written = record;
    let status: number | null = null;

    try {
      written = writeOrHangUp(exchange, record);
      if (response.headersSent) status = response.statusCode;
    } catch (error) {
      // Node refuses the reply.
      written = replies.complete(turnAway(record, error), request);
      hangUp(response);
    }
    observe(exchange, written, status);
  }

  function observe(exchange: Exchange, record: RequestRecord, status: number | null) {
    if (observer.isWatching || record.reason !== undefined) observer.observe(exchange, record, status);
  }

  /** The same for a stream, when it has ended. Never rejects. */
  async function stream(exchange: Exchange, replied: RequestRecord, reply: ResponseReply) {
    const { request, response } = exchange;
    const record = extendRecord(replied, {});
    let sent: RequestRecord = record;

    try {
      await sendResponse(exchange, reply, {
        clock,
        expiresAtMillis: record.caller?.expiresAtMillis,

        writeHead(more) {
          const fields = replies.extraFields(record, request.headers.origin);
          writeStreamHead(exchange, reply, [...fields, ...more]);
        },
      });
    } catch (error) {
      const failed = recordThrown(exchange, record, error);
      if (!response.headersSent) return write(exchange, failed);

      cutOff(exchange);
      if (failed.reason !== undefined) sent = replies.complete(failed, request);
    }
    observe(exchange, sent, response.headersSent ? response.statusCode : null);
  }

  function respond(exchange: Exchange) {
    // RFC 9112 §9.6: nothing runs after the last response, or if the client has gone.
    const isOver = exchange.isGone || exchange.connection.isEnding;
    const record = isOver ? {} : attempt(() => pipeline(exchange), bug);
    void andThen(record, (known) => {
      const { reply } = known;
      return isResponseReply(reply) ? stream(exchange, known, reply) : write(exchange, known);
    });
  }

  function refuseConnection(refused: Refused, request: RawRequest) {
    const replied = replies.finish(turnAway({}, refused), request);
    const { reply } = replied;
    observer.observe({ request, arrivedAtMillis: startTiming() }, replied, reply.status);
    return reply;
  }

  return { startTiming, respond, refuseConnection };
}

const bug = (error: unknown) => turnAway({}, error);
