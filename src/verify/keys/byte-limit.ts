// Bounds what a server may send for one fetch, whatever of it is data. Promises: ends the connections when
// more comes. Does not bound the time.
import type { Socket } from 'node:net';
import { codeOf } from '../base/encoding.ts';
import { FetchError } from './jwks.ts';

/** What may be sent for one fetch: heads, interim responses, framing and bodies, and what the proxy says. */
const MAX_BYTES = 512 * 1024;
/** What TLS may add: certificates, tickets and the framing of its records. */
const MAX_TLS_BYTES = 128 * 1024;
const WATCH_MILLIS = 20;

/** Ends the connections of one fetch when more is sent for it than may be. */
export class ByteLimit {
  readonly #maxBytes;
  readonly #connections: Socket[] = [];
  readonly #counted: Socket[] = [];
  #bytesLeft;
  /** What connections had received before. */
  #bytesBefore = 0;
  #isExceeded = false;

  /** Node emits no event for TLS records without data, such as new keys and tickets. */
  readonly #timer = setInterval(() => {
    const received = this.#connections.reduce((sum, { bytesRead }) => sum + bytesRead, 0);
    const isOver = received - this.#bytesBefore + this.#bytesLeft > this.#maxBytes + MAX_TLS_BYTES;
    if (isOver) this.#exceed();
  }, WATCH_MILLIS);

  readonly #countData = ({ length }: Buffer) => {
    this.#bytesLeft -= length;
    if (this.#bytesLeft < 0) this.#exceed();
  };

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes;
    this.#bytesLeft = maxBytes;
  }

  /** Counts what a connection receives, and what comes over it before TLS. */
  watch(connection: Socket) {
    this.#connections.push(connection);
    this.#bytesBefore += connection.bytesRead;
    this.count(connection);
  }

  /** Counts data, whatever Node's parser makes of it. Unlike `on`, this does not start to read. */
  count(socket: Socket) {
    this.#counted.push(socket);
    socket.prependListener('data', this.#countData);
  }

  /** Whether no data has come. */
  get isUntouched() {
    return this.#bytesLeft === this.#maxBytes;
  }

  #exceed() {
    this.#isExceeded = true;
    // Not at once: Node's parser still expects its socket to be there.
    queueMicrotask(() => this.#disconnect());
  }

  #disconnect() {
    this.#connections.forEach((connection) => connection.destroy());
  }

  /** Throws `FetchError` if more was sent. */
  check() {
    if (this.#isExceeded) throw new FetchError('too-large');
  }

  /** Counts until the work ends. Rejects like `check`, or with a `FetchError` for each of Node's errors. */
  async during<Result>(work: Promise<Result>): Promise<Result> {
    try {
      return await work;
    } catch (error) {
      // Node throws some errors without closing the connection.
      this.#disconnect();
      throw sorted(error);
    } finally {
      clearInterval(this.#timer);
      // A connection may be kept.
      for (const socket of this.#counted) socket.off('data', this.#countData);
      this.check();
    }
  }
}

/** By what an operator can do. */
function sorted(error: unknown) {
  if (FetchError.is(error) || codeOf(error) === undefined) return error;

  const code = String(codeOf(error));
  const isAboutCertificates = /CERT|SIGNATURE|TLS|SSL|CA$|PATH_LENGTH|PURPOSE|HOSTNAME/.test(code);
  return new FetchError(isAboutCertificates ? 'certificate-refused' : 'connection-failed', code);
}
