// A bounded memory that forgets first what was used longest ago.
// Does not judge what it remembers: whoever asks it checks again all that time can change.

class Entry<Value> {
  older: Entry<Value> = this;
  newer: Entry<Value> = this;
  readonly key: string;
  readonly value: Value;
  constructor(key: string, value: Value) { [this.key, this.value] = [key, value]; }
}
export class Memory<Value> {
  readonly #capacity: number;
  readonly #entries = new Map<string, Entry<Value | undefined>>();
  /** The entries as a ring in the order of their use, the longest unused after this one, the last used before it. A Map has an order
   * too, but keeping it would cost a deletion at every use, and every deletion of the first a walk past those deleted before. */
  readonly #end = new Entry<Value | undefined>('', undefined);
  /** `capacity` in entries; 0 remembers nothing. */
  constructor(capacity: number) { this.#capacity = capacity; }
  get size(): number { return this.#entries.size; }
  /** The value, if it is remembered; asking counts as use. */
  get(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    if (entry !== undefined && entry !== this.#end.older) this.#append(unlink(entry));
    return entry?.value;
  }
  set(key: string, value: Value): void {
    this.delete(key);
    const entry = new Entry<Value | undefined>(key, value);
    this.#entries.set(key, entry);
    this.#append(entry);
    if (this.#entries.size > this.#capacity) this.delete(this.#end.newer.key);
  }
  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (entry !== undefined) this.#entries.delete(unlink(entry).key);
  }
  #append(entry: Entry<Value | undefined>): void {
    entry.older = this.#end.older;
    entry.newer = this.#end;
    entry.older.newer = entry.newer.older = entry;
  }
}
function unlink<Value>(entry: Entry<Value>): Entry<Value> {
  entry.older.newer = entry.newer;
  entry.newer.older = entry.older;
  return entry;
}
