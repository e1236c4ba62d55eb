// A bounded memory that forgets first what was used longest ago.
// Does not judge what it remembers: whoever takes from it checks again all that time can change.

export class Memory<Value> {
  readonly #capacity: number;
  readonly #entries = new Map<string, Value>();
  /** `capacity` in entries; 0 remembers nothing. */
  constructor(capacity: number) { this.#capacity = capacity; }
  get size(): number { return this.#entries.size; }
  /** The value, which is no longer remembered then: `set` it again once it has proved to be still good. */
  take(key: string): Value | undefined {
    const value = this.#entries.get(key);
    if (value !== undefined) this.#entries.delete(key);
    return value;
  }
  set(key: string, value: Value): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#capacity) return;
    for (const oldest of this.#entries.keys()) return void this.#entries.delete(oldest);
  }
}
