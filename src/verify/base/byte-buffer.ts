// Joins chunks, since a small one takes hundreds of times its length in memory. Does not limit the size.

export class ByteBuffer {
  #buffer = Buffer.alloc(0);
  #length = 0;

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

  /** Returns the bytes and keeps none. */
  release(): Buffer {
    const bytes = this.#buffer.subarray(0, this.#length);
    this.#buffer = Buffer.alloc(0);
    this.#length = 0;
    return bytes;
  }
}
