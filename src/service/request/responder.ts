// Writes the response to each request. Trusts the fields of a reply, checked when it was made. Promises: a
// request gets one response in one write, unless its connection ends first; an unread body ends the
// connection; a bug is a 500 that reveals nothing; no error escapes.
import { andThen, attempt, nothing, type Clock } from '../../verify/base/clock.ts';
import { UsageError } from '../../verify/base/events.ts';
import { Refused } from '../../verify/base/refusal.ts';
import type { RawRequest } from '../../verify/request/facts.ts';
import type { Watcher } from '../../gate/observe.ts';
import { extendRecord, turnAway, turnedAwayBy, type RequestRecord } from '../../gate/decide.ts';
import { extraFields, type Reply } from '../../gate/replies/reply.ts';
import type { Replies } from '../../gate/replies/refusal-replies.ts';
import { HandlerReply, isResponseReply, type ResponseReply } from '../routes/handler-result.ts';
import { BodyWriter, discardBody, hasBodyToSend } from '../fetch/stream.ts';
import { bind, joinRepeated, type Exchange } from './exchange.ts';
import { recordThrown, type Pipeline } from './pipeline.ts';

const CUT = 'the body of a Response failed with fail() or a refusal after its head was sent';

export class Responder {
  readonly #pipeline;
  readonly #replies;
  readonly #observer;
  readonly #clock;
  /** What waits for `release`, in order. */
  #held: (() => void)[] | undefined;
  /** How many requests have begun and are not observed yet. The clients of some may have gone. */
  #inProgress = 0;
  #onIdle = nothing;

  constructor(pipeline: Pick<Pipeline, 'respond'>, replies: Replies, observer: Watcher, clock: Clock) {
    this.#pipeline = pipeline;
    this.#replies = replies;
    this.#observer = observer;
    this.#clock = clock;
  }

  /** Returns the time, or 0 when it is not needed. */
  startTiming() {
    return this.#observer.isWatching ? this.#observer.startTiming() : 0;
  }

  /** Never throws. */
  respond(exchange: Exchange) {
    if (this.#held !== undefined) {
      this.#held.push(bind(() => this.respond(exchange)));
      return;
    }

    this.#inProgress += 1;
    const { request, response, connection } = exchange;
    // RFC 9112 §9.6: nothing runs after the last response, or if the client has gone.
    const isOver = exchange.isGone || connection.isEnding;
    const serve = () => this.#pipeline.respond(exchange);
    const record = isOver ? {} : attempt(serve, turnedAwayBy);

    const send = (known: RequestRecord): unknown => {
      const held = this.#held;
      if (held !== undefined) return held.push(bind(() => send(known)));

      const { reply } = known;
      // RFC 9112 §6.1, §6.3: to HTTP/1.0, a body without a length is not coded, and ends with the connection.
      if (reply?.content === '' && request.httpVersion === '1.0') {
        response.useChunkedEncodingByDefault = false;
        response.shouldKeepAlive = false;
        // What reads the request's own body reads on.
        connection.endReading('read');
      }
      if (isResponseReply(reply)) {
        if (hasBodyToSend(exchange, reply)) return this.#stream(exchange, known, reply);
        discardBody(exchange, reply);
      }
      return this.#write(exchange, known);
    };

    void andThen(record, send);
  }

  /** Until `release`, no request begins to be served, and no response is written. */
  hold() {
    this.#held = [];
  }

  release() {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const goOn of held) goOn();
  }

  /** Calls back once no request is in progress. */
  whenIdle(then: () => void) {
    if (this.#inProgress === 0) then();
    else this.#onIdle = then;
  }

  /** For bytes that are not a request, or a request that Node hands over with its socket. */
  refuseConnection(refused: Refused, request: RawRequest): Reply {
    const replied = this.#replies.finish(turnedAwayBy(refused), request);
    const { reply } = replied;
    const arrival = { request, arrivedAtMillis: this.startTiming() };
    this.#observer.observe(arrival, replied, reply.status);
    return reply;
  }

  /** Writes the response or, without a reply, ends the connection. Observes. Never throws. */
  #write(exchange: Exchange, record: RequestRecord) {
    const { request } = exchange;
    let written = record;

    try {
      if (record.reason !== undefined) written = this.#replies.complete(record, request);

      const { reply } = written;
      if (reply !== undefined) {
        writeReply(exchange, reply, extraFields(record, this.#replies.crossOrigin, request.headers.origin));
      } else if (!exchange.isGone) hangUp(exchange);
    } catch (error) {
      // Node refuses the reply.
      written = this.#replies.complete(turnAway(record, error), request);
      hangUp(exchange);
    }
    this.#observe(exchange, written);
  }

  /** The same for a stream, when it has ended. */
  #stream(exchange: Exchange, replied: RequestRecord, reply: ResponseReply) {
    const { origin } = exchange.request.headers;
    const record = extendRecord(replied, {});

    const writeFields = (more: readonly string[]) => {
      const fields = extraFields(record, this.#replies.crossOrigin, origin);
      writeHead(exchange, reply, [...fields, ...more]);
    };

    const expiresAtMillis = record.caller?.expiresAtMillis;
    const writer = new BodyWriter(exchange, reply);
    // Without waiting, which would keep a frame for each stream.
    void writer.send({ clock: this.#clock, expiresAtMillis, writeFields }).then(
      () => this.#observe(exchange, record),
      (error) => this.#endFailed(exchange, record, error),
    );
  }

  #endFailed(exchange: Exchange, record: RequestRecord, error: unknown) {
    const { request, response } = exchange;
    if (!response.headersSent) return this.#write(exchange, recordThrown(exchange, record, error));

    const failed = recordThrown(exchange, record, failureOf(error));
    exchange.resetIfBegun();
    response.destroy();
    return this.#observe(exchange, this.#replies.complete(failed, request));
  }

  #observe(exchange: Exchange, record: RequestRecord) {
    this.#inProgress -= 1;
    if (this.#inProgress === 0) this.#onIdle();
    const observer = this.#observer;
    if (!observer.isWatching && record.reason === undefined) return;

    const { headersSent, statusCode } = exchange.response;
    observer.observe(exchange, record, headersSent ? statusCode : null);
  }
}

/** After the head, neither a refusal nor `fail()` can be sent. */
function failureOf(error: unknown) {
  if (HandlerReply.isGenuine(error)) return new UsageError(CUT);
  if (!Refused.is(error)) return error;

  const { reason } = error.refusal;
  return new UsageError(`${CUT}: ${reason}`);
}

/** RFC 9112 §9.6 */
export const CLOSE = ['Connection', 'close'];

/** `more` are fields of this request alone. `closes` ends the connection. */
export function writeReply(exchange: Exchange, reply: Reply, more: readonly string[]) {
  if (exchange.isGone) return;

  const { response } = exchange;
  const { content } = reply;
  writeHead(exchange, reply, more);
  // Corked: Node 20 and 22 send `end(text)` in two pieces.
  if (content !== '') {
    response.cork();
    response.write(content);
    response.uncork();
  }
  response.end();
}

function writeHead(exchange: Exchange, reply: Reply, more: readonly string[]) {
  const { response } = exchange;
  const { status, fields, closes } = reply;
  const isLast = closes || endsConnection(exchange);
  // What is not read after other replies would pile up.
  if (isLast) exchange.connection.endReading(isResponseReply(reply) ? afterLast(exchange) : 'pause');
  // Without `shouldKeepAlive` Node adds `close`.
  const last = isLast && response.shouldKeepAlive ? CLOSE : [];
  response.writeHead(status, joinRepeated([...fields, ...more, ...last]));
}

/** Unless a connection is read on, it does not show that the client leaves. */
function afterLast({ request }: Exchange) {
  const isBeingRead = !request.complete && request.readableFlowing !== null;
  return isBeingRead ? 'read' : 'drop';
}

/** An unread body does: its bytes are not a request. */
function endsConnection({ request, response }: Exchange) {
  const { upgrade, 'transfer-encoding': coding, 'content-length': length = '0' } = request.headers;
  // RFC 9112 §6.3: either field announces a body.
  const hasBody = coding !== undefined || Number(length) > 0;
  const isUnread = hasBody && !request.isRead;
  // Node reads nothing after an offer to upgrade, which we ignore (RFC 9110 §7.8).
  return !response.shouldKeepAlive || isUnread || upgrade !== undefined;
}

/** Ends the connection when this response's turn comes: Node 24 never destroys a queued response. */
export function hangUp({ response }: Pick<Exchange, 'response'>) {
  if (response.socket !== null) response.destroy();
  else response.once('socket', (socket) => socket.destroySoon());
}
