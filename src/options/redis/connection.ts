// One connection to one server, from its first byte to its end. Trusts the server. Promises: each command is
// settled once, by its reply or without one; none waits longer than a second for its whole reply.
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Clock } from '../../verify/base/clock.ts';
import { encode, parseReply, reasonIn, type Reply } from './resp.ts';
import type { Address } from './target.ts';

export const REPLY_MILLIS = 1_000;
const MAX_REPLY_LENGTH = 64 * 1024;
export const MAX_WAITING = 10_000;
const MAX_PORT = 65_535;
/** Networks forget silent connections, often after minutes, and tell neither side. */
const PROBE_MILLIS = 60_000;

const CLOSED = 'closed';

/** Gets the reply, or `undefined` if there is none. Returns whether the connection may go on. */
export type Settle = (reply: Reply | undefined) => boolean;

type Command = Readonly<{ sentAt: number; settle: Settle }>;

export interface Endpoint extends Address {
  readonly isTls: boolean;
  /** How long it may take until it is ready. */
  readonly greetingMillis: number;
  /** Default: 64 KiB. */
  readonly maxReplyLength?: number;
}

export interface Events {
  /** Over TLS, the certificate is verified. */
  readonly onOpen: (connection: Connection) => void;
  /** The last event. Every command is settled. */
  readonly onEnd: (reason: string) => void;
}

export class Connection {
  readonly #clock;
  readonly #socket: Socket;
  /** Commands without a reply, oldest first. */
  readonly #waiting: Command[] = [];
  /** An incomplete reply. */
  #received = '';
  /** Whether replies are timed one by one. */
  #isReady = false;
  #reasonOfEnd = CLOSED;
  #cancelTimer;
  readonly #maxReplyLength;

  constructor(endpoint: Endpoint, clock: Clock, events: Events) {
    this.#clock = clock;
    this.#maxReplyLength = endpoint.maxReplyLength ?? MAX_REPLY_LENGTH;
    this.#cancelTimer = clock.after(endpoint.greetingMillis, this.#giveUp);
    this.#socket = connectTo(endpoint, () => {
      this.#socket.setNoDelay().setKeepAlive(true, PROBE_MILLIS);
      events.onOpen(this);
    }).setEncoding('latin1');

    this.#socket
      .unref()
      .on('data', (text: string) => this.#read(text))
      .on('error', ({ code = CLOSED }: NodeJS.ErrnoException) => this.end(code))
      .on('close', () => {
        this.#cancelTimer();
        for (const { settle } of this.#waiting.splice(0)) settle(undefined);
        events.onEnd(this.#reasonOfEnd);
      });
  }

  /** From now on, each command has a second. */
  becomeReady() {
    this.#isReady = true;
  }

  /** One write for all commands of a turn. Returns false once it has ended, and while too many wait. */
  send(words: readonly string[], settle: Settle): boolean {
    if (this.#socket.destroyed || this.#waiting.length === MAX_WAITING) return false;

    if (this.#socket.writableCorked === 0) {
      this.#socket.cork();
      setImmediate(() => this.#socket.uncork());
    }
    this.#socket.write(encode(words));
    this.#waiting.push({ sentAt: this.#clock.monotonic(), settle });
    if (this.#waiting.length === 1) this.#expectReply();
    return true;
  }

  /** The first reason counts. */
  end(reason: string) {
    if (this.#reasonOfEnd === CLOSED) this.#reasonOfEnd = reason;
    this.#cancelTimer();
    this.#socket.destroy();
  }

  #giveUp = () => this.end('timeout');

  /** A long reply comes in many pieces, and each attempt reads it from its beginning. */
  #isPiece() {
    const isLong = this.#received.length > MAX_REPLY_LENGTH;
    return isLong && !this.#isReady && !this.#received.endsWith('\r\n');
  }

  #read(text: string) {
    this.#received += text;
    let start = 0;
    while (!this.#isPiece()) {
      const parsed = parseReply(this.#received, start);
      if (parsed === 'incomplete') break;
      if (parsed === 'malformed' || parsed.end - start - 2 > this.#maxReplyLength) {
        return this.end(reasonIn(null));
      }

      start = parsed.end;
      const mayGoOn = this.#waiting.shift()?.settle(parsed.reply);
      if (!mayGoOn) return this.end(reasonIn(parsed.reply));
    }

    this.#received = this.#received.slice(start);
    if (this.#received.length > this.#maxReplyLength) return this.end(reasonIn(null));
    if (start > 0) this.#expectReply();
  }

  /** Counts from the oldest command: counting from the last reply, a queue could wait for minutes. */
  #expectReply() {
    if (!this.#isReady) return;

    this.#cancelTimer();
    const [oldest] = this.#waiting;
    if (oldest === undefined) {
      this.#socket.unref();
      return;
    }

    // A program may await nothing but the reply.
    this.#socket.ref();
    const millis = oldest.sentAt + REPLY_MILLIS - this.#clock.monotonic();
    // After the turn: this timer may be late, and the reply on its way.
    this.#cancelTimer = this.#clock.after(millis, () => setImmediate(this.#giveUpOn, oldest));
  }

  #giveUpOn = (late: Command) => {
    if (this.#waiting[0] === late) this.#giveUp();
  };
}

function connectTo({ host, port, isTls }: Endpoint, opened: () => void) {
  const options = {
    host,
    // A node may name what is no port, for which Node throws. Nothing listens on 0.
    port: port > MAX_PORT ? 0 : port,
    // RFC 6066 §3: no addresses.
    servername: isIP(host) === 0 ? host : '',
    // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED=0 cannot turn it off.
    rejectUnauthorized: true,
  };
  return isTls ? connectTls(options, opened) : connect(options, opened);
}
