// One connection as the listener knows it: the answers under way on it, and since when it is idle, unread or
// ended. Trusts the times that it is given. Promises: it ends after its answers and in stages, so that no
// reset overtakes them; nothing of a request is kept once it is answered. Does not limit a header that
// arrives: Node does.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { isEnding, pauseReading, resumeReading } from './write.ts';
import { CLIENT_CLOSED } from './exchange.ts';

/** Longer than the idle time of load balancers, so that they never send into a closing connection. */
export const KEEP_ALIVE_MILLIS = 72_000;

/** How long an answer may lie unread. */
const UNREAD_MILLIS = 90_000;

/** How long, and how much of, what a client still sends is read and thrown away when the connection ends. */
const LINGER_MILLIS = 1_000;
const LINGER_BYTES = 1024 * 1024;

/**
 * How much is read behind a request that waits for its answer: as much as Node reads at a time. Without
 * answers that pile up Node itself knows no bound.
 */
const AHEAD_BYTES = 64 * 1024;

/** How long a request may arrive. */
export const REQUEST_MILLIS = 15_000;

/** Told of each request and each answer; asked every second whether a limit has passed. */
export class Connection {
  readonly #socket: Socket;

  /** In the order of their requests, which is the order of the answers (RFC 9112 §9.3.2). */
  readonly #underWay: ServerResponse[] = [];

  /** Up to which byte had been read when each of them began. */
  readonly #beganAt: number[] = [];

  #isHeld = false;
  #isFinishing = false;

  /** When the first of them, one after the other, were found to be written. */
  readonly #writtenAt: number[] = [];

  /** How much had come when the last answer was written. */
  #bytesRead = 0;

  #idleSince: number | undefined;
  #arrivingSince: number | undefined;
  #endedAt: number | undefined;
  #makeLastWord: (() => string) | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    // Node calls this after the answer that closes the connection, and would reset a client that still
    // sends.
    socket.destroySoon = () => this.#end();
    // Node would start a timer with every answer, and anew with every byte: `isOverdue` counts instead.
    socket.setTimeout = () => socket;
    socket.on('end', () => this.#tell(CLIENT_CLOSED));
  }

  /** A request has arrived. */
  begin(response: ServerResponse): void {
    this.#underWay.push(response);
    this.#beganAt.push(this.#socket.bytesRead);
    this.#arrivingSince = undefined;
    response.on('finish', this.#finish);
    if (this.#isFinishing) response.shouldKeepAlive = false;
    if (this.#isFarAhead) this.#hold();
  }

  /** Whether so much has come since the oldest request under way began that no more is read for now. */
  get #isFarAhead(): boolean {
    const { bytesRead } = this.#socket;
    return bytesRead - (this.#beganAt[0] ?? bytesRead) > AHEAD_BYTES;
  }

  #hold(): void {
    this.#isHeld = true;
    pauseReading(this.#socket);
  }

  #letGo(): void {
    this.#isHeld = false;
    const isLast = this.#makeLastWord !== undefined || isEnding(this.#socket);
    if (!isLast) resumeReading(this.#socket);
  }

  /** The request of which not all has arrived. */
  get arriving(): IncomingMessage | undefined {
    const last = this.#underWay.at(-1)?.req;
    return last?.complete ? undefined : last;
  }

  /** Whether every answer is written, and nothing of another request has come. */
  get isIdle(): boolean {
    return this.#underWay.length === 0 && this.#socket.bytesRead === this.#bytesRead;
  }

  /** A drain begins: the next answer, or the last of those under way, is the last (RFC 9112 §9.6). */
  finishUp(): void {
    this.#isFinishing = true;
    const last = this.#underWay.at(-1);
    if (last === undefined || last.headersSent || this.arriving !== undefined) return;

    last.shouldKeepAlive = false;
    this.#isHeld = false;
    // It may be worked out already: what comes behind it would be carried out, and not answered.
    pauseReading(this.#socket);
  }

  /** The connection is gone. Before version 24 Node tells it only the first of those under way. */
  leave(): void {
    this.#tell('close');
  }

  #tell(event: string | symbol): void {
    for (const response of this.#underWay) response.emit(event);
  }

  readonly #finish = (): void => {
    for (const ofEach of [this.#underWay, this.#beganAt, this.#writtenAt]) ofEach.shift();
    this.#bytesRead = this.#socket.bytesRead;
    this.#idleSince = undefined;
    if (this.#isHeld && !this.#isFarAhead) this.#letGo();
    this.#endWithLastWord();
  };

  /**
   * Ends it with an answer to what never became a request, after those under way. The first call counts, and
   * no more requests are looked for.
   */
  endWith(makeText: () => string): void {
    this.#makeLastWord ??= makeText;
    // The requests before it may yet wait for their turn: they are carried out.
    pauseReading(this.#socket);
    this.#endWithLastWord();
  }

  #endWithLastWord(): void {
    if (this.#makeLastWord !== undefined && this.#underWay.length === 0) this.#end(this.#makeLastWord);
  }

  /** RFC 9112 §9.6: first our side, and the rest when the client has closed or a moment has passed. */
  #end(makeText = () => ''): void {
    const socket = this.#socket;
    if (!socket.writable) return;

    socket.end(makeText());
    this.#throwAway();
  }

  /** What still comes. */
  #throwAway(): void {
    const socket = this.#socket;
    let bytes = 0;
    // Node's own listeners would go on looking for requests, and end it without the last word.
    socket.removeAllListeners('data').removeAllListeners('end');
    socket.on('data', (chunk) => {
      bytes += chunk.length;
      if (bytes > LINGER_BYTES) socket.pause();
    });
    resumeReading(socket);
    // Node stops reading unknown to the stream when answers pile up.
    socket._read(0);
  }

  /**
   * Whether a request arrives for too long. Node looks no more for one whose header it has found late once.
   * To be asked as `isOverdue` is.
   */
  isLate(nowMillis: number): boolean {
    if (this.arriving === undefined || this.#isHeld) return false;

    this.#arrivingSince ??= nowMillis;
    return nowMillis - this.#arrivingSince >= REQUEST_MILLIS;
  }

  /**
   * Whether a limit has passed. To be asked every second: a time counts from when it was first seen here.
   */
  isOverdue(nowMillis: number): boolean {
    if (this.#socket.writableEnded) {
      this.#endedAt ??= nowMillis;
      return nowMillis - this.#endedAt >= LINGER_MILLIS;
    }

    if (this.#underWay.length === 0) {
      this.#idleSince ??= nowMillis;
      return nowMillis - this.#idleSince >= KEEP_ALIVE_MILLIS;
    }

    while (this.#underWay[this.#writtenAt.length]?.writableEnded) {
      this.#writtenAt.push(nowMillis);
    }
    const oldest = this.#writtenAt[0] ?? nowMillis;
    return nowMillis - oldest >= UNREAD_MILLIS;
  }
}
