// A bounded memory of what was asked for again, which forgets first what was remembered longest ago, a
// generation at a time. Does not judge what it remembers: whoever asks it checks again all that time can
// change.

/** A power of two; 4 bytes each, whatever is seen. */
const MARKS = 65_536;

/**
 * Remembers what is offered for the second time, since what is seen once costs memory and earns nothing: of
 * that at least the last half of `capacity` entries, and at most `capacity`, rounded up to an even number.
 * Keys must end in at least 8 characters of a digest, base64url.
 */
export class Cache<Value> {
  readonly #capacityOfAGeneration: number;
  #recent = new Map<string, Value>();
  #older = new Map<string, Value>();
  /** Of keys that were offered; a later key takes the place of an earlier one. */
  readonly #marks = new Int32Array(MARKS);

  constructor(capacity: number) {
    this.#capacityOfAGeneration = Math.ceil(capacity / 2);
  }

  get(key: string): Value | undefined {
    return this.#recent.get(key) ?? this.#older.get(key);
  }

  /** Takes no more than a note of a key that it is offered for the first time. */
  offer(key: string, value: Value): void {
    const mark = markOf(key);
    const slot = mark & (MARKS - 1);
    const isMarked = this.#marks[slot] === mark;
    this.#marks[slot] = mark;
    if (!isMarked || this.#capacityOfAGeneration === 0) return;

    if (this.#recent.size >= this.#capacityOfAGeneration) {
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(key, value);
  }
}

/** 32 bits of a digest; two keys that share them are taken for one, and remembered a use too early. */
function markOf(key: string) {
  const bytes = Buffer.from(key.slice(-8), 'base64url');
  return bytes.readInt32LE();
}
