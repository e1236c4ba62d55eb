// A bounded memory that forgets first what was used longest ago.
// Does not judge what it remembers: whoever asks it checks again all that time can change.

class Entry<Value> {
  older: Entry<Value> = this;
  newer: Entry<Value> = this;
  readonly key: string;
  readonly value: Value | undefined;
  constructor(key = '', value?: Value) {
    [this.key, this.value] = [key, value];
  }
  leave(): void {
    [this.older.newer, this.newer.older] = [this.newer, this.older];
  }
  standBefore(end: Entry<Value>): void {
    this.leave();
    [this.older, this.newer] = [end.older, end];
    this.older.newer = end.older = this;
  }
}
export class Memory<Value> {
  readonly #capacity: number;
  readonly #entries = new Map<string, Entry<Value>>();
  /** The entries as a ring in the order of their use: the longest unused after this one, the last used before it. The order of the Map
   * itself would cost a deletion at every use, and every deletion of the first entry a walk past all that were deleted before it. */
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
    entry?.standBefore(this.#end);
    return entry?.value;
  }
  set(key: string, value: Value): void {
    if (this.#capacity === 0) return;
    this.delete(key);
    const entry = new Entry(key, value);
    this.#entries.set(key, entry);
    entry.standBefore(this.#end);
    if (this.#entries.size > this.#capacity) this.#forget(this.#end.newer);
  }
  delete(key: string): void {
    this.#forget(this.#entries.get(key));
  }
  #forget(entry: Entry<Value> | undefined): void {
    if (entry === undefined) return;
    entry.leave();
    this.#entries.delete(entry.key);
  }
}
