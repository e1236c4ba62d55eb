// Node's request, made cheaper: an empty body ends without events, an unread one is kept as one piece, and a
// whole one is handed over as it arrives. Trusts Node to read only while there is room. Does not limit a body
// that is read: service/routes/body.ts does.
import { IncomingMessage } from 'node:http';
import { ByteBuffer } from '../../verify/base/byte-buffer.ts';

/** Gets each chunk of a body, then `null`. */
export type BodyReader = (chunk: Buffer | null) => void;

export class RequestStream extends IncomingMessage {
  #unread: ByteBuffer | undefined;
  #reader: BodyReader | undefined;

  /** Whether the body was read to its end. */
  get isRead() {
    // Without a reader it is `null` until reading begins.
    return this.complete && (this.#reader !== undefined || this.readableFlowing !== null);
  }

  /** In place of the events of a stream, which cost more than the body. What has arrived comes at once. */
  readBy(reader: BodyReader) {
    const unread = this.#unread?.release() ?? null;
    const arrived: Buffer | null = this.complete ? this.read() : unread;
    this.#unread = undefined;
    this.#reader = reader;

    if (arrived !== null) reader(arrived);
    if (this.complete) reader(null);
    // Node may have stopped, for want of room.
    else if (arrived !== null) this._read(0);
  }

  override resume(): this {
    if (isOver(this) && this.listenerCount('data') === 0) return this;

    // Its reader would wait for more.
    this.#release();
    return super.resume();
  }

  #release() {
    if (this.#unread !== undefined) super.push(this.#unread.release());
    this.#unread = undefined;
  }

  /** Joins the chunks of an unread body. */
  override push(piece: Buffer | null): boolean {
    if (this.#reader !== undefined) {
      this.#reader(piece);
      return true;
    }

    if (piece !== null && !this.readableFlowing) {
      this.#unread ??= new ByteBuffer();
      return this.#unread.add(piece) < this.readableHighWaterMark;
    }

    this.#release();
    return super.push(piece);
  }
}

const isOver = (request: IncomingMessage) => request.complete && request.readableLength === 0;

// Node releases a request once this is true.
Object.defineProperty(RequestStream.prototype, 'readableEnded', {
  get(this: IncomingMessage) {
    return isOver(this);
  },
});
