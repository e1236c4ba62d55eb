// The client of a store, whatever its address names.
import type { Clock } from '../../verify/base/clock.ts';
import { Cluster } from './cluster.ts';
import { IS_MASTER, locateMaster } from './discovery.ts';
import { Link, type Client, type Locate, type Watcher } from './link.ts';
import { parseTarget, type Target } from './target.ts';

/** Connects at once, and again whenever a connection is lost. Trusts a URL of the rule `storeUrl`. */
export function createClient(url: string, clock: Clock, watcher: Watcher): Client {
  const target = parseTarget(url);
  return target.kind === 'redis-cluster'
    ? new Cluster(target, clock, watcher)
    : createSingle(target, clock, watcher);
}

function createSingle(target: Target, clock: Clock, watcher: Watcher): Client {
  const isWatched = target.kind === 'redis-sentinel';
  const [address] = target.hosts;
  const locate: Locate = isWatched ? locateMaster(target, clock) : (found) => found(address, '');
  const link = new Link(target, locate, clock, watcher, isWatched ? IS_MASTER : undefined);

  return {
    kind: target.kind,
    send: (_, words, settle) => link.send(words, settle),
    isUp: () => link.isReady,
    close: () => link.close(),
  };
}
