// Bytes that come in pieces. Trusts its user to bound them. Promises: they are kept in one piece, since
// small ones would take hundreds of times their length.

/** The bytes of one message or stream, in their order. */
export class ByteBuffer {
  #buffer = Buffer.alloc(0);
  #length = 0;

  /** Gives how many there are now. */
  add(piece: Uint8Array): number {
    const needed = this.#length + piece.length;
    if (needed > this.#buffer.length) {
      const size = Math.max(needed, this.#buffer.length * 2);
      this.#buffer = Buffer.concat([this.#buffer], size);
    }
    this.#buffer.set(piece, this.#length);
    this.#length = needed;
    return needed;
  }

  /** All of them so far, which are then no longer kept here. */
  release(): Buffer {
    const bytes = this.#buffer.subarray(0, this.#length);
    this.#buffer = Buffer.alloc(0);
    this.#length = 0;
    return bytes;
  }
}
