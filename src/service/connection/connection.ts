// One connection: its in-flight responses, and how long it has been idle, unread or ended. Promises: ends
// after its responses, in stages, so that no reset overtakes them; keeps nothing of a request after its
// response. Does not time header fields: Node does.
import type { Socket } from 'node:net';
import type { AfterLast, Exchange } from '../request/exchange.ts';

/** Longer than load balancers wait, so that none writes to a closing connection. */
export const KEEP_ALIVE_MILLIS = 72_000;

/** For a client that does not read a response. */
const UNREAD_MILLIS = 90_000;

/** For a stream: a client that vanishes sends no end. */
const PROBE_MILLIS = 30_000;

/** What to read and drop after closing our side. */
const LINGER_MILLIS = 1_000;
const LINGER_BYTES = 1024 * 1024;

/** What may arrive after a request that has no response yet. Node sets no limit. */
const AHEAD_BYTES = 64 * 1024;

interface UnderWay {
  readonly exchange: Exchange;
  readonly beganAtByte: number;
  /** When `isOverdue` first found it written, or its stream stuck. */
  unreadSinceMillis?: number | undefined;
}

/** The listener asks `isLate` and `isOverdue` every second. */
export class Connection {
  readonly #socket;
  readonly #requestMillis;

  /** RFC 9112 §9.3.2: in order. */
  readonly #underWay: UnderWay[] = [];

  #isHeld = false;
  /** In a drain: the last of the requests that have arrived together closes it. */
  isFinishing = false;
  /** The last response is known: nothing after it is read or run. */
  isEnding = false;
  /** In a drain: the response that closes the connection. */
  #last: Exchange['response'] | undefined;

  #bytesRead = 0;
  #bytesWritten = 0;

  #idleSinceMillis: number | undefined;
  #arrivingSinceMillis: number | undefined;
  #endedAtMillis: number | undefined;
  #makeFinalText: (() => string) | undefined;

  constructor(socket: Socket, requestMillis: number) {
    this.#socket = socket;
    this.#requestMillis = requestMillis;
    // Node's own, after the last response, would reset a client that still sends.
    socket.destroySoon = this.#end;
    // `isOverdue` replaces Node's timer, which restarts with every byte.
    socket.setTimeout = changeNothing;
    socket.on('end', () => this.leave());
  }

  begin(exchange: Exchange) {
    const { response } = exchange;
    this.#underWay.push({ exchange, beganAtByte: this.#socket.bytesRead });
    this.#arrivingSinceMillis = undefined;
    response.on('finish', this.#finish);
    if (this.isFinishing) {
      this.#closeAfter(response);
      // Once what has arrived is parsed.
      setImmediate(() => this.finishUp());
    }
    if (this.#isFarAhead) {
      this.#isHeld = true;
      pauseReading(this.#socket);
    }
  }

  get #isFarAhead() {
    const { bytesRead } = this.#socket;
    return bytesRead - (this.#underWay[0]?.beganAtByte ?? bytesRead) > AHEAD_BYTES;
  }

  endReading(then: AfterLast = 'pause') {
    this.isEnding = true;
    if (then === 'pause') pauseReading(this.#socket);
    if (then === 'drop') {
      this.#discardRest();
      this.#socket.on('end', () => this.leave());
    }
  }

  /** At once, but so that no client takes a part for the whole. */
  cutOff() {
    this.#underWay[0]?.exchange.resetIfBegun();
    this.#socket.destroy();
  }

  /** Ends the wait for its handlers, once a drain has cut it off. */
  abandon() {
    for (const { exchange } of this.#underWay) exchange.abandon();
  }

  get arriving() {
    const last = this.#underWay.at(-1)?.exchange;
    return last?.request.complete ? undefined : last;
  }

  get isIdle() {
    return this.#underWay.length === 0 && this.#socket.bytesRead === this.#bytesRead;
  }

  /** Whether the client has sent a part of a header. */
  get hasBegun() {
    return this.#underWay.length === 0 && !this.isIdle;
  }

  /**
   * For a drain: the newest response closes the connection or, if it has begun, the next one does (RFC 9112
   * §9.6).
   */
  finishUp() {
    this.isFinishing = true;
    for (const { exchange } of this.#underWay) exchange.interrupt();
    const last = this.#underWay.at(-1)?.exchange.response;
    if (last?.headersSent !== false) return;

    this.#closeAfter(last);
    if (this.arriving) return;

    this.#isHeld = false;
    // A later request would run, but get no response.
    pauseReading(this.#socket);
  }

  /** Instead of an earlier one, so that all are sent. What its client ends is not kept open. */
  #closeAfter(response = this.#last) {
    if (this.#last?.headersSent === false) this.#last.shouldKeepAlive = true;
    // Deno would destroy the connection before the final text.
    const hasMore = this.#makeFinalText && !('Deno' in globalThis);
    this.#last = response?.shouldKeepAlive && !hasMore ? response : undefined;
    if (this.#last) this.#last.shouldKeepAlive = false;
  }

  /** The client has closed its side, or the connection is gone. */
  leave() {
    for (const { exchange } of this.#underWay) exchange.leave();
  }

  readonly #finish = () => {
    this.#underWay.shift();
    this.#bytesRead = this.#socket.bytesRead;
    this.#idleSinceMillis = undefined;
    if (this.#isHeld && !this.#isFarAhead) {
      this.#isHeld = false;
      if (!this.#makeFinalText && !this.isEnding) resumeReading(this.#socket);
    }
    this.#endWithFinalText();
  };

  /** Ends it with the response to CONNECT, or to bytes that are not a request. Only the first call counts. */
  endWith(makeText: () => string) {
    this.#makeFinalText ??= makeText;
    this.#closeAfter();
    // After a CONNECT, Node does not tell a stream that there is room.
    this.#socket.on('drain', () => {
      this.#underWay[0]?.exchange.response.emit('drain');
    });
    // Requests that have arrived are still served.
    pauseReading(this.#socket);
    this.#endWithFinalText();
  }

  #endWithFinalText() {
    if (this.#makeFinalText && this.#underWay.length === 0) this.#end(this.#makeFinalText);
  }

  /** RFC 9112 §9.6: closes our side; the socket closes when the client does, or after `LINGER_MILLIS`. */
  readonly #end = (makeText?: () => string) => {
    const socket = this.#socket;
    if (!socket.writable) return;

    socket.end(makeText?.() ?? '');
    this.#discardRest();
  };

  #discardRest() {
    const socket = this.#socket;
    let bytes = 0;
    socket.removeAllListeners('data').removeAllListeners('end');
    socket.on('data', (chunk) => {
      bytes += chunk.length;
      if (bytes > LINGER_BYTES) socket.pause();
    });
    resumeReading(socket);
    // Node stops reading behind the stream's back while responses pile up.
    socket._read(0);
  }

  /** Whether a request takes too long to arrive. Node checks that only once per connection. */
  isLate(nowMillis: number) {
    if (this.arriving === undefined || this.#isHeld) return false;

    this.#arrivingSinceMillis ??= nowMillis;
    return nowMillis - this.#arrivingSinceMillis >= this.#requestMillis;
  }

  /** Limits count from the call that first saw the state. */
  isOverdue(nowMillis: number) {
    if (this.#socket.writableEnded) {
      this.#endedAtMillis ??= nowMillis;
      return nowMillis - this.#endedAtMillis >= LINGER_MILLIS;
    }

    if (this.#underWay.length === 0) {
      this.#idleSinceMillis ??= nowMillis;
      return nowMillis - this.#idleSinceMillis >= KEEP_ALIVE_MILLIS;
    }

    for (const each of this.#underWay) {
      if (!each.exchange.response.writableEnded) break;
      each.unreadSinceMillis ??= nowMillis;
    }
    this.#watchStream(nowMillis);
    const unreadSinceMillis = this.#underWay[0]?.unreadSinceMillis ?? nowMillis;
    return nowMillis - unreadSinceMillis >= UNREAD_MILLIS;
  }

  /** A stream is unread if it waits for its client, or is silent and its client may have left. */
  #watchStream(nowMillis: number) {
    const [first] = this.#underWay;
    if (first?.exchange.isStreaming !== true) return;

    const { response } = first.exchange;
    if (response.writableEnded) return;

    this.#socket.setKeepAlive(true, PROBE_MILLIS);
    const { bytesWritten, readable, readableFlowing } = this.#socket;
    const isSilent = bytesWritten === this.#bytesWritten;
    // Unless it is read, the connection does not show that the client leaves.
    const isRead = readable && readableFlowing !== false;
    const isStuck = isSilent && (response.writableNeedDrain || !isRead);
    this.#bytesWritten = bytesWritten;
    first.unreadSinceMillis = isStuck ? (first.unreadSinceMillis ?? nowMillis) : undefined;
  }
}

function changeNothing(this: Socket) {
  return this;
}

/** Until `resumeReading`: Node alone would resume too early. */
export function pauseReading(socket: Socket) {
  socket.pause();
  socket.resume = changeNothing;
  socket.off('resume', pauseAgain).on('resume', pauseAgain);
}

/** A `resume` that was pending still fires, but Node's parser must not be fed while paused. */
function pauseAgain(this: Socket) {
  this.emit('pause');
}

export function resumeReading(socket: Socket) {
  Reflect.deleteProperty(socket, 'resume');
  socket.off('resume', pauseAgain);
  socket.resume();
}
