// Joins chunks, since a small one takes hundreds of times its length in memory. Does not limit the size.

const EMPTY: Buffer = Buffer.alloc(0);

export class ByteBuffer {
  #buffer = EMPTY;
  #length = 0;

  /** Keeps the first chunk as it is: often it is the only one. */
  add(piece: Buffer): number {
    if (this.#length === 0) {
      this.#buffer = piece;
      this.#length = piece.length;
      return this.#length;
    }

    const needed = this.#length + piece.length;
    if (needed > this.#buffer.length) {
      const size = Math.max(needed, this.#buffer.length * 2);
      this.#buffer = Buffer.concat([this.#buffer], size);
    }
    this.#buffer.set(piece, this.#length);
    this.#length = needed;
    return needed;
  }

  /** Returns the bytes and keeps none. */
  release(): Buffer {
    const bytes = this.#buffer.subarray(0, this.#length);
    this.#buffer = EMPTY;
    this.#length = 0;
    return bytes;
  }
}
