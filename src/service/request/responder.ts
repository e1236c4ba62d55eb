// Writes the response to each request. Trusts the fields of a reply, checked when it was made. Promises: a
// request gets one response in one write, unless its connection ends first; an unread body ends the
// connection; a bug is a 500 that reveals nothing; no error escapes.
import type { ServerResponse } from 'node:http';
import { andThen, attempt, type Clock } from '../../verify/base/clock.ts';
import type { Refused } from '../../verify/base/refusal.ts';
import type { RawRequest } from '../../verify/request/facts.ts';
import type { Observer } from '../../gate/observe.ts';
import { turnAway, type RequestRecord } from '../../gate/record.ts';
import type { Reply } from '../../gate/replies/reply.ts';
import type { Replies } from '../../gate/replies/refusal-replies.ts';
import { isResponseReply, type ResponseReply } from '../fetch/response.ts';
import { sendResponse } from '../fetch/stream.ts';
import type { AfterLast, Exchange } from './exchange.ts';
import { recordThrown, type Pipeline } from './pipeline.ts';

export interface Responder {
  /** Returns the time, or 0 when nobody reads it. */
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
      const { reply: _, ...known } = record;
      written = replies.complete(turnAway(known, error), request);
      hangUp(response);
    }
    observe(exchange, written, status);
  }

  function observe(exchange: Exchange, record: RequestRecord, status: number | null) {
    if (observer.isWatching || record.reason !== undefined) observer.observe(exchange, record, status);
  }

  /** The same for a stream, when it has ended. Never rejects. */
  async function stream(exchange: Exchange, { reply: _, ...record }: RequestRecord, reply: ResponseReply) {
    const { request, response } = exchange;
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
    // RFC 9112 §9.6: nothing runs after the last response, or if nobody would get it.
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

/** RFC 9112 §9.6 */
export const CLOSE = ['Connection', 'close'];

/** `more` are fields of this request alone. `closes` ends the connection. */
export function writeReply(exchange: Exchange, reply: Reply, more: readonly string[]) {
  if (exchange.isGone) return;

  const { response } = exchange;
  const { content } = reply;
  // What is not read at once would pile up.
  writeHead(exchange, reply, more, 'pause');
  // Corked: Node 20 and 22 send `end(text)` in two pieces.
  if (content !== '') {
    response.cork();
    response.write(content);
    response.uncork();
  }
  response.end();
}

/** The connection is read on: otherwise it would not show that the client leaves. */
export function writeStreamHead(exchange: Exchange, reply: Reply, more: readonly string[]) {
  const { complete, readableFlowing } = exchange.request;
  const isBeingRead = !complete && readableFlowing !== null;
  writeHead(exchange, reply, more, isBeingRead ? 'read' : 'drop');
}

function writeHead(
  exchange: Exchange,
  { status, fields, closes }: Reply,
  more: readonly string[],
  afterLast: AfterLast,
) {
  const { response } = exchange;
  const isLast = closes || endsConnection(exchange);
  if (isLast) exchange.connection.endReading(afterLast);
  // Without `shouldKeepAlive` Node adds `close`.
  const last = isLast && response.shouldKeepAlive ? CLOSE : [];
  response.writeHead(status, [...fields, ...more, ...last]);
}

/** An unread body does: its bytes are not a request. */
function endsConnection({ request, response }: Exchange) {
  const { upgrade, 'transfer-encoding': coding, 'content-length': length = '0' } = request.headers;
  // RFC 9112 §6.3: either field announces a body.
  const hasBody = coding !== undefined || length !== '0';
  // `null` until reading begins.
  const isUnread = hasBody && !(request.complete && request.readableFlowing !== null);
  // Node reads nothing after an offer to upgrade, which we ignore (RFC 9110 §7.8).
  return !response.shouldKeepAlive || isUnread || upgrade !== undefined;
}

/**
 * Ends the connection so that no client takes a part for the whole. To HTTP/1.0, the end of the connection is
 * that of the body (RFC 9112 §6.3), unless it is a reset.
 */
export function cutOff({ request, response }: Exchange) {
  if (request.httpVersion === '1.0') request.socket.resetAndDestroy();
  response.destroy();
}

/** Ends the connection when this response's turn comes: Node 24 never destroys a queued response. */
export function hangUp(response: ServerResponse) {
  if (response.socket !== null) response.destroy();
  else response.once('socket', (socket) => socket.destroySoon());
}
