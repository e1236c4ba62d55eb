// Node's request, made cheaper for empty and unread bodies. Trusts Node to read only while there is room.
// Does not limit a body that is read: service/routes/body.ts does.
import { IncomingMessage } from 'node:http';
import { ByteBuffer } from '../../verify/base/byte-buffer.ts';

/**
 * Empty bodies end without events, which saves 4 % of a request.
 */
export class RequestStream extends IncomingMessage {
  #unread: ByteBuffer | undefined;

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
