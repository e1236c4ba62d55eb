/* Chance that can be repeated: everything that a case does follows from the seed of the run and the number of
   the case. */

export class Random {
  #state: [number, number, number, number];

  constructor(seed: number, iteration: number) {
    this.#state = [seed | 0, iteration | 0, 0x9e3779b9 | 0, 1];
    for (let round = 0; round < 15; round += 1) this.#next();
  }

  /** The next 32 bits of sfc32. */
  #next(): number {
    let [a, b, c, d] = this.#state;
    const result = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + result) | 0;
    this.#state = [a, b, c, d];
    return result >>> 0;
  }

  /** An integer from 0 to `limit - 1`. */
  below(limit: number): number {
    return Math.floor((this.#next() / 2 ** 32) * limit);
  }

  chance(probability: number): boolean {
    return this.#next() / 2 ** 32 < probability;
  }

  pick<Value>(list: readonly Value[]): Value {
    return list[this.below(list.length)]!;
  }

  bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.below(256)));
  }
}
