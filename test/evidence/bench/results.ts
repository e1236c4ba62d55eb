/* The results of a run, as in results.json, and those of short runs by line of Node, as in lines.json. */

/** `ratio` is the median of the ratios to the base of the same round. */
export interface Row {
  readonly server: string;
  readonly value: number;
  readonly ratio: number;
}

export interface Section {
  readonly name: string;
  readonly title: string;
  readonly unit: 'µs' | 'requests/s' | 'ms' | 'MiB';
  /** The highest ratio that gatehouse may have. */
  readonly goal?: number | undefined;
  readonly rows: readonly Row[];
}

export interface Review {
  readonly server: string;
  readonly packages: number;
  readonly files: number;
  /** Tokens of the language, without comments. */
  readonly tokens: number;
}

export interface Results {
  readonly machine: Readonly<Record<string, string | number>>;
  readonly rounds: number;
  readonly seconds: number;
  readonly distinctTokens: number;
  readonly sections: readonly Section[];
  readonly review: readonly Review[];
}

/** By line, such as `20`. */
export type Runs = Readonly<Record<string, Results>>;
