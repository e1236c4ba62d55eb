/* Times in constant space: counted in tenths of a millisecond up to ten seconds. */

const PER_MILLISECOND = 10;
const BUCKETS = 100_001;

export class Latencies {
  readonly #buckets = new Uint32Array(BUCKETS);
  #count = 0;
  slowest = 0;

  add(millis: number): void {
    const bucket = Math.min(BUCKETS - 1, Math.floor(millis * PER_MILLISECOND));
    this.#buckets[bucket] = (this.#buckets[bucket] ?? 0) + 1;
    this.#count += 1;
    this.slowest = Math.max(this.slowest, millis);
  }

  /** The time in milliseconds within which this share (0 to 1) of the responses arrived. */
  percentile(share: number): number {
    let left = Math.ceil(this.#count * share);
    const bucket = this.#buckets.findIndex((count) => {
      left -= count;
      return left <= 0;
    });
    return Math.max(0, bucket) / PER_MILLISECOND;
  }
}
