/* What is visible of a service from outside: memory and descriptors of its process, its fetches from the
   provider, and time. */
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as pass } from 'node:timers/promises';
import type { Provider } from '../idp/provider.ts';

/** Resident memory in MiB (Linux). */
export function residentMebibytes(pid: number): number {
  const [, kibibytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kibibytes) / 1024);
}

/** Open descriptors (Linux). */
export const descriptors = (pid: number) => readdirSync(`/proc/${pid}/fd`).length;

/**
 * Polls every ten milliseconds until it holds. Returns the seconds that it took, and throws after
 * `limitSeconds`.
 */
export async function until(
  what: string,
  isSo: () => boolean | Promise<boolean>,
  limitSeconds: number,
): Promise<number> {
  const start = performance.now();
  const seconds = () => (performance.now() - start) / 1000;
  while (!(await isSo())) {
    if (seconds() > limitSeconds) throw new Error(`waited ${limitSeconds} s in vain until ${what}`);
    await pass(10);
  }
  return seconds();
}

/** Watches the fetches that arrive at a provider, to about ten milliseconds. */
export class FetchWatch {
  /** When each fetch began, in seconds of `performance.now`. */
  readonly starts: number[] = [];
  /** The longest time in seconds that one fetch had a socket. */
  longest = 0;
  readonly #provider: Provider;
  readonly #by: 'discovery' | 'connections';
  readonly #timer: NodeJS.Timeout;
  #seen: number;
  #openSince: number | undefined;
  #lastOpenAt = -Infinity;

  /** Every fetch begins with discovery, unless TLS fails. */
  constructor(provider: Provider, by: 'discovery' | 'connections' = 'discovery') {
    this.#provider = provider;
    this.#by = by;
    this.#seen = provider.counts[by];
    this.#timer = setInterval(() => this.#look(), 10).unref();
  }

  #look(): void {
    const now = performance.now() / 1000;
    const count = this.#provider.counts[this.#by];
    const isNew = count !== this.#seen;
    if (isNew) this.starts.push(now);
    this.#seen = count;
    if (this.#provider.openSockets === 0) {
      this.#openSince = undefined;
      return;
    }
    if (isNew || this.#openSince === undefined) this.#openSince = now;
    this.#lastOpenAt = now;
    this.longest = Math.max(this.longest, now - this.#openSince);
  }

  /** Whether the last fetch has had no socket for a tenth of a second: not just between its two requests. */
  get isQuiet(): boolean {
    return this.#provider.openSockets === 0 && performance.now() / 1000 - this.#lastOpenAt > 0.1;
  }

  /** The seconds between the starts of fetches. */
  get gaps(): number[] {
    return this.starts.slice(1).map((start, index) => start - this.starts[index]!);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
