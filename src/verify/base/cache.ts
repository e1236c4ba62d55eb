// A bounded cache that admits a key on its second use and evicts a generation at a time. Does not expire
// values: the caller checks them again.

/** A power of two; 4 bytes each. */
const MARKS = 65_536;

/**
 * Holds at most `capacity` values, rounded up to even. Keys must end in 8 characters of a base64url digest.
 */
export class Cache<Value> {
  readonly #generationCapacity: number;
  #recent = new Map<string, Value>();
  #older = new Map<string, Value>();
  /** The last offered key of each slot. */
  readonly #marks = new Int32Array(MARKS);

  constructor(capacity: number) {
    this.#generationCapacity = Math.ceil(capacity / 2);
  }

  get(key: string): Value | undefined {
    return this.#recent.get(key) ?? this.#older.get(key);
  }

  /** Stores the value if its key was offered before. */
  offer(key: string, value: Value) {
    const mark = markOf(key);
    const slot = mark & (MARKS - 1);
    const isMarked = this.#marks[slot] === mark;
    this.#marks[slot] = mark;
    if (!isMarked || this.#generationCapacity === 0) return;

    if (this.#recent.size >= this.#generationCapacity) {
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(key, value);
  }
}

/** 32 bits of a digest. A collision only admits a key too early. */
function markOf(key: string) {
  const bytes = Buffer.from(key.slice(-8), 'base64url');
  return bytes.readInt32LE();
}
