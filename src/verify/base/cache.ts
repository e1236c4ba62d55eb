// A bounded cache that admits a key on its second use and evicts a generation at a time. Does not expire
// values: the caller checks them again.

/** Of 4 bytes each. With fewer, keys that are used alternately would evict each other's mark. */
const LEAST_MARKS = 65_536;
const MARKS_OF_A_VALUE = 4;
/** How likely it is that a mark keeps its place for longer than its turn. */
const STAYS = 1 / 32;

/**
 * Holds at most `capacity` values, rounded up to even. Keys are ASCII, and end in 8 characters of base64url
 * that no client can choose, such as those of a digest or signature.
 */
export class Cache<Value> {
  readonly #generationCapacity;
  #recent = new Map<string, Value>();
  #older = new Map<string, Value>();
  /** The last two offered keys of each slot, the last one first. */
  readonly #marks;

  constructor(capacity: number) {
    this.#generationCapacity = Math.ceil(capacity / 2);
    const wanted = Math.max(LEAST_MARKS, capacity * MARKS_OF_A_VALUE);
    // A power of two, so that bits of a mark choose its slot.
    this.#marks = new Int32Array(2 ** Math.ceil(Math.log2(wanted)));
  }

  get(key: string): Value | undefined {
    return this.#recent.get(key) ?? this.#older.get(key);
  }

  /** Stores a value if its key was offered before. */
  offer(key: string, makeValue: () => Value) {
    if (this.#generationCapacity === 0 || !this.#isMarked(key)) return;

    if (this.#recent.size >= this.#generationCapacity) {
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    // A copy: a slice would keep all of its text.
    this.#recent.set(Buffer.from(key, 'latin1').toString('latin1'), makeValue());
  }

  /** Marks it if it is not. Two places, so that two keys of one slot do not evict each other for ever. */
  #isMarked(key: string) {
    const marks = this.#marks;
    // 32 bits of the key. A collision only admits a key too early.
    const mark = Buffer.from(key.slice(-8), 'base64url').readInt32LE();
    const slot = mark & (marks.length - 2);
    if (marks[slot] === mark || marks[slot + 1] === mark) return true;

    // Now and then the earlier one stays, or three keys used alternately would evict each other for ever.
    if (Math.random() > STAYS) marks[slot + 1] = marks[slot] ?? 0;
    marks[slot] = mark;
    return false;
  }
}
