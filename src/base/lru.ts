// A bounded memory that forgets first what was read longest ago.
// Does not judge what it remembers: whoever asks it checks again all that time can change.

class Entry<Value> {
  older: Entry<Value> = this;
  newer: Entry<Value> = this;
  readonly key: string;
  readonly value: Value | undefined;

  constructor(key = '', value?: Value) {
    this.key = key;
    this.value = value;
  }

  unlink(): void {
    this.older.newer = this.newer;
    this.newer.older = this.older;
  }

  moveBefore(end: Entry<Value>): void {
    this.unlink();
    this.older = end.older;
    this.newer = end;
    this.older.newer = this;
    end.older = this;
  }
}

export class LruCache<Value> {
  readonly #capacity: number;
  readonly #entries = new Map<string, Entry<Value>>();
  // The entries as a ring: the least recently used after this one, the most recently used before it. The
  // order of the Map itself would cost a deletion at every use, and each eviction a walk past all that were
  // deleted before.
  readonly #end = new Entry<Value>();

  /** `capacity` in entries; 0 remembers nothing. */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The value, if it is remembered; asking counts as use. */
  get(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    entry?.moveBefore(this.#end);
    return entry?.value;
  }

  set(key: string, value: Value): void {
    if (this.#capacity === 0) return;

    this.delete(key);
    const entry = new Entry(key, value);
    this.#entries.set(key, entry);
    entry.moveBefore(this.#end);
    if (this.#entries.size > this.#capacity) this.#forget(this.#end.newer);
  }

  delete(key: string): void {
    this.#forget(this.#entries.get(key));
  }

  #forget(entry: Entry<Value> | undefined): void {
    if (entry === undefined) return;

    entry.unlink();
    this.#entries.delete(entry.key);
  }
}
