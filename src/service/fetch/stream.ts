// Sends a `Response`: its head, then its body as it comes. Promises: reads at most one chunk ahead of what
// the socket accepts; no part looks like the whole; an event stream ends with its token and with a drain.
import { ignoreErrors, nothing, type Clock } from '../../verify/base/clock.ts';
import { isBytes } from '../../verify/base/encoding.ts';
import { UsageError } from '../../verify/base/events.ts';
import type { Exchange } from '../request/exchange.ts';
import type { BodyReader, FetchBody, ResponseReply } from '../routes/handler-result.ts';

/** Of one write, so that a client that reads slowly is not taken for one that has stopped. */
const PIECE_BYTES = 64 * 1024;

/** The clock may be set, and timers stand still while the machine sleeps. */
const LOOK_MILLIS = 10_000;

const NO_BYTES = 'a chunk of the body of a Response is not a Uint8Array';
const OTHER_LENGTH = 'the body of a Response is shorter or longer than its Content-Length';

/** RFC 9110 §15.3.5, §15.3.6, §15.4.5 */
const WITHOUT_BODY = [204, 205, 304];

const afterTurn = () => new Promise<false>((resolve) => void setImmediate(resolve, false));

/** For a body that will not be read. */
export const discard = (body: FetchBody | null) => void ignoreErrors(() => body?.cancel());

export interface Sending {
  readonly clock: Clock;
  /** `more` are fields. */
  readonly writeFields: (more: readonly string[]) => void;
  /** When an event stream ends, in milliseconds since the epoch. */
  readonly expiresAtMillis: number | undefined;
}

/** Whether there is a body to send (RFC 9110 §9.3.2), and a client that gets it. */
export const hasBodyToSend = (exchange: Exchange, { status }: ResponseReply) =>
  exchange.request.method !== 'HEAD' && !WITHOUT_BODY.includes(status) && !exchange.isGone;

/** For a body that is not to be sent. */
export function discardBody(exchange: Exchange, { body }: ResponseReply) {
  // What feeds a body may listen to the signal alone, and then close it.
  if (body) exchange.controller.abort();
  discard(body);
}

/** Takes a body from its reader to the client. */
export class BodyWriter {
  readonly #exchange;
  readonly #reply;
  #reader: BodyReader | undefined;
  #bytesLeft;
  #result: Promise<unknown> | undefined;
  #ahead: Promise<Uint8Array | undefined> | undefined;
  #isOver = false;
  #wake = nothing;
  #endRead: (end: undefined) => void = nothing;
  #cancelTimer = nothing;

  constructor(exchange: Exchange, reply: ResponseReply) {
    this.#exchange = exchange;
    this.#reply = reply;
    this.#bytesLeft = reply.lengthBytes;
  }

  /** Resolves when it is sent, or the client has gone. Rejects if it must be cut off, or before its head. */
  async send(sending: Sending) {
    this.#reader = this.#reply.body?.getReader();
    this.#exchange.onInterrupted(() => this.#check());
    try {
      let chunk = await this.#begin(sending);
      do {
        if (chunk !== undefined) await this.#write(chunk);
        // A silent stream waits here alone: each function that waits keeps its frame.
        await (this.#ahead ?? this.#pull());
        chunk = await this.#next();
      } while (chunk !== undefined);

      this.#end();
    } finally {
      this.#stop();
      this.#cancelTimer();
    }
  }

  /** Returns the first chunk, unless events are to come. */
  async #begin({ clock, writeFields, expiresAtMillis }: Sending) {
    const { isEventStream } = this.#reply;
    const exchange = this.#exchange;
    // Before the head, so that a bug is a 500.
    const first = isEventStream ? undefined : await this.#next();
    // Earlier responses are written first.
    if (exchange.response.socket === null && !exchange.isGone) await this.#wokenBy('socket');
    const isWhole = await this.#isWhole(first);
    if (exchange.isGone) return undefined;

    if (isWhole && this.#bytesLeft > 0) throw new UsageError(OTHER_LENGTH);

    const hasLength = !isWhole || !isNaN(this.#bytesLeft);
    writeFields(hasLength ? [] : ['content-length', String(first?.length ?? 0)]);
    if (!isEventStream) return first;

    exchange.response.flushHeaders();
    if (expiresAtMillis !== undefined) this.#finishAt(expiresAtMillis, clock);
    this.#check();
    return undefined;
  }

  /** Whether nothing follows a small chunk, as far as the body says so within a turn. May reject. */
  async #isWhole(chunk: Uint8Array | undefined) {
    // Events are still to come.
    if (chunk === undefined) return !this.#reply.isEventStream;
    if (chunk.length > PIECE_BYTES) return false;

    const ahead = this.#read();
    this.#ahead = ahead;
    return Promise.race([ahead.then((more) => more === undefined), afterTurn()]);
  }

  /** What the reader says next, until `#read` takes it; nothing once the stream is over. */
  #pull() {
    if (this.#isOver) return undefined;

    this.#result ??= new Promise((resolve, reject) => {
      this.#endRead = resolve;
      Promise.resolve(this.#reader?.read() ?? { done: true }).then(resolve, reject);
    });
    return this.#result;
  }

  #next() {
    const chunk = this.#ahead ?? this.#read();
    this.#ahead = undefined;
    return chunk;
  }

  async #read(): Promise<Uint8Array | undefined> {
    const result = this.#pull();
    this.#result = undefined;
    const { done, value } = Object(await result);
    if (done || this.#isOver) return undefined;
    if (!isBytes(value)) throw new UsageError(NO_BYTES);

    this.#bytesLeft -= value.length;
    if (this.#bytesLeft < 0) throw new UsageError(OTHER_LENGTH);
    // The last byte waits until nothing follows it.
    if (this.#bytesLeft === 0) await this.#read();
    return value;
  }

  async #write(chunk: Uint8Array) {
    const { response } = this.#exchange;
    for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
      if (this.#isOver) return;
      const piece = chunk.subarray(at, at + PIECE_BYTES);
      if (!response.write(piece)) await this.#wokenBy('drain');
    }
  }

  #wokenBy(event: 'drain' | 'socket') {
    return new Promise<void>((resolve) => {
      this.#wake = resolve;
      this.#exchange.response.once(event, resolve);
    });
  }

  #check() {
    if (this.#isOver) return;

    const { isGone, hasLeft, connection } = this.#exchange;
    if (isGone) this.#stop();
    // A client that has only closed its side may wait for the end of any other stream.
    else if (this.#reply.isEventStream && (hasLeft || connection.isFinishing)) this.#finish();
  }

  #finishAt(millis: number, clock: Clock) {
    const leftMillis = Math.min(millis - clock.now(), LOOK_MILLIS);
    if (leftMillis <= 0) this.#finish();
    else this.#cancelTimer = clock.after(leftMillis, () => this.#finishAt(millis, clock));
  }

  /** The proper end. */
  #finish() {
    this.#exchange.controller.abort();
    this.#stop();
  }

  #stop() {
    this.#isOver = true;
    void ignoreErrors(() => this.#reader?.cancel());
    // A polyfill may cancel its reader only after a pending read.
    if (!this.#exchange.response.writableEnded) discard(this.#reply.body);
    this.#endRead(undefined);
    this.#wake();
  }

  #end() {
    const { isGone, response } = this.#exchange;
    if (isGone) return;

    const left = this.#bytesLeft;
    if (left > 0 || (this.#isOver && left === 0)) throw new UsageError(OTHER_LENGTH);
    response.end();
  }
}
