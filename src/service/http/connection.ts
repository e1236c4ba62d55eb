// One connection: the responses under way, and since when it is idle, unread or ended. Promises: it ends
// after its responses and in stages, so that no reset overtakes them; it keeps nothing of a request after
// its response. Does not limit how long header fields may take: Node does.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { isEnding, pauseReading, resumeReading } from './write.ts';
import { CLIENT_CLOSED } from './exchange.ts';

/** Longer than load balancers wait, so that they never write into a closing connection. */
export const KEEP_ALIVE_MILLIS = 72_000;

const UNREAD_MILLIS = 90_000;

/** How long, and how much, is read and dropped after our side has closed. */
const LINGER_MILLIS = 1_000;
const LINGER_BYTES = 1024 * 1024;

/** How much may arrive behind a request without a response: one read. Node has no limit itself. */
const AHEAD_BYTES = 64 * 1024;

export const REQUEST_MILLIS = 15_000;

interface UnderWay {
  readonly response: ServerResponse;
  /** `bytesRead` when its request began. */
  readonly beganAt: number;
  /** When `isOverdue` first found it and all before it written. */
  writtenAt?: number;
}

/** The listener asks `isLate` and `isOverdue` every second. */
export class Connection {
  readonly #socket: Socket;

  /** In the order of their requests (RFC 9112 §9.3.2). */
  readonly #underWay: UnderWay[] = [];

  #isHeld = false;
  #isFinishing = false;

  /** `bytesRead` when the last response was written. */
  #bytesRead = 0;

  #idleSince: number | undefined;
  #arrivingSince: number | undefined;
  #endedAt: number | undefined;
  #makeFinalText: (() => string) | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    // Node calls it after the last response; its own would reset a client that still sends.
    socket.destroySoon = () => this.#end();
    // Node would restart a timer with every byte and response; `isOverdue` replaces it.
    socket.setTimeout = () => socket;
    socket.on('end', () => this.#emit(CLIENT_CLOSED));
  }

  begin(response: ServerResponse): void {
    this.#underWay.push({ response, beganAt: this.#socket.bytesRead });
    this.#arrivingSince = undefined;
    response.on('finish', this.#finish);
    if (this.#isFinishing) response.shouldKeepAlive = false;
    if (this.#isFarAhead) this.#hold();
  }

  get #isFarAhead(): boolean {
    const { bytesRead } = this.#socket;
    return bytesRead - (this.#underWay[0]?.beganAt ?? bytesRead) > AHEAD_BYTES;
  }

  #hold(): void {
    this.#isHeld = true;
    pauseReading(this.#socket);
  }

  #resume(): void {
    this.#isHeld = false;
    const isLast = this.#makeFinalText !== undefined || isEnding(this.#socket);
    if (!isLast) resumeReading(this.#socket);
  }

  /** The request that is incomplete. */
  get arriving(): IncomingMessage | undefined {
    const last = this.#underWay.at(-1)?.response.req;
    return last?.complete ? undefined : last;
  }

  /** Whether every response is written, and nothing else has arrived. */
  get isIdle(): boolean {
    return this.#underWay.length === 0 && this.#socket.bytesRead === this.#bytesRead;
  }

  /** A drain begins: the next response, or the last of those under way, is the last (RFC 9112 §9.6). */
  finishUp(): void {
    this.#isFinishing = true;
    const last = this.#underWay.at(-1)?.response;
    if (last === undefined || last.headersSent || this.arriving !== undefined) return;

    last.shouldKeepAlive = false;
    this.#isHeld = false;
    // Its reply may be computed already: a request behind it would run without a response.
    pauseReading(this.#socket);
  }

  /** The connection is gone. Before version 24 Node tells only the first response under way. */
  leave(): void {
    this.#emit('close');
  }

  #emit(event: string | symbol): void {
    for (const { response } of this.#underWay) response.emit(event);
  }

  readonly #finish = (): void => {
    this.#underWay.shift();
    this.#bytesRead = this.#socket.bytesRead;
    this.#idleSince = undefined;
    if (this.#isHeld && !this.#isFarAhead) this.#resume();
    this.#endWithFinalText();
  };

  /**
   * Ends it with the response to bytes that are no request, after those under way. The first call counts.
   */
  endWith(makeText: () => string): void {
    this.#makeFinalText ??= makeText;
    // Earlier requests that still wait for their turn are served.
    pauseReading(this.#socket);
    this.#endWithFinalText();
  }

  #endWithFinalText(): void {
    if (this.#makeFinalText !== undefined && this.#underWay.length === 0) this.#end(this.#makeFinalText);
  }

  /** RFC 9112 §9.6: closes our side; the rest when the client closes, or after `LINGER_MILLIS`. */
  #end(makeText = () => ''): void {
    const socket = this.#socket;
    if (!socket.writable) return;

    socket.end(makeText());
    this.#discardRest();
  }

  #discardRest(): void {
    const socket = this.#socket;
    let bytes = 0;
    // Node's own listeners would parse requests, and end the socket early.
    socket.removeAllListeners('data').removeAllListeners('end');
    socket.on('data', (chunk) => {
      bytes += chunk.length;
      if (bytes > LINGER_BYTES) socket.pause();
    });
    resumeReading(socket);
    // Node has stopped reading behind the stream's back where responses piled up.
    socket._read(0);
  }

  /** Whether a request takes too long to arrive; Node checks each connection only once. */
  isLate(nowMillis: number): boolean {
    if (this.arriving === undefined || this.#isHeld) return false;

    this.#arrivingSince ??= nowMillis;
    return nowMillis - this.#arrivingSince >= REQUEST_MILLIS;
  }

  /** Whether a limit has passed, counted from the call that first saw its state. */
  isOverdue(nowMillis: number): boolean {
    if (this.#socket.writableEnded) {
      this.#endedAt ??= nowMillis;
      return nowMillis - this.#endedAt >= LINGER_MILLIS;
    }

    if (this.#underWay.length === 0) {
      this.#idleSince ??= nowMillis;
      return nowMillis - this.#idleSince >= KEEP_ALIVE_MILLIS;
    }

    for (const each of this.#underWay) {
      if (!each.response.writableEnded) break;
      each.writtenAt ??= nowMillis;
    }
    const unreadSince = this.#underWay[0]?.writtenAt ?? nowMillis;
    return nowMillis - unreadSince >= UNREAD_MILLIS;
  }
}
