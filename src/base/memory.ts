// A bounded memory of what was asked for again, which forgets first what was used longest ago, a generation
// at a time. Does not judge what it remembers: whoever asks it checks again all that time can change.

/** A power of two; 4 bytes each, whatever is seen. */
const MARKS = 65_536;

/**
 * Remembers what is set for the second time, since what is seen once costs memory and earns nothing: of that
 * at least the half of `capacity` entries that were used last, and at most `capacity`, which is at least 1
 * and rounded up to an even number. Keys must end in at least 8 characters of a digest, base64url.
 */
export class LruCache<Value> {
  readonly #capacityOfAGeneration: number;
  #recent = new Map<string, Value>();
  #older = new Map<string, Value>();
  /** Of keys that were set once; a later key takes the place of an earlier one. */
  readonly #marks = new Int32Array(MARKS);

  constructor(capacity: number) {
    this.#capacityOfAGeneration = Math.ceil(capacity / 2);
  }

  /** The value, if it is remembered; asking counts as use. */
  get(key: string): Value | undefined {
    const recent = this.#recent.get(key);
    if (recent !== undefined) return recent;

    const older = this.#older.get(key);
    if (older !== undefined) this.#remember(key, older);
    return older;
  }

  set(key: string, value: Value): void {
    const mark = markOf(key);
    const place = mark & (MARKS - 1);
    if (this.#marks[place] === mark) this.#remember(key, value);
    else this.#marks[place] = mark;
  }

  #remember(key: string, value: Value): void {
    const isFull = this.#recent.size >= this.#capacityOfAGeneration;
    if (isFull && !this.#recent.has(key)) {
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(key, value);
  }

  delete(key: string): void {
    this.#recent.delete(key);
    this.#older.delete(key);
  }
}

/** 32 bits of a digest; two keys that share them are taken for one, and remembered a use too early. */
function markOf(key: string) {
  const bytes = Buffer.from(key.slice(-8), 'base64url');
  return bytes.readInt32LE();
}
