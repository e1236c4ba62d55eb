// The client of a store, whatever its address names.
import type { Clock } from '../../verify/base/clock.ts';
import type { Settle } from './connection.ts';
import { Link, type Watcher } from './link.ts';
import { parseTarget, type Target } from './target.ts';

export interface Client {
  readonly kind: Target['kind'];
  /** Sends a command on a key. Returns whether it is sent; otherwise `settle` is not called. */
  readonly send: (key: string, words: readonly string[], settle: Settle) => boolean;
  /** Whether commands on any key would be sent. */
  readonly isUp: () => boolean;
  readonly close: () => void;
}

/** Connects at once, and again whenever a connection is lost. Trusts a URL of the rule `storeUrl`. */
export function createClient(url: string, clock: Clock, watcher: Watcher): Client {
  const target = parseTarget(url);
  const { kind } = target;
  const [address] = target.hosts;
  const link = new Link(target, (found) => found(address, ''), clock, watcher);

  return {
    kind,
    send: (_, words, settle) => link.send(words, settle),
    isUp: () => link.isReady,
    close: () => link.close(),
  };
}
