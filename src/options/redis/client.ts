// The client of a store, whatever its address names.
import type { Clock } from '../../verify/base/clock.ts';
import { Cluster } from './cluster.ts';
import { IS_MASTER, locateMaster } from './discovery.ts';
import { Link, type Client, type Watcher } from './link.ts';
import { parseTarget } from './target.ts';

/** Connects at once, and again whenever a connection is lost. Trusts a URL of the rule `storeUrl`. */
export function createClient(url: string, clock: Clock, watcher: Watcher): Client {
  const target = parseTarget(url);
  if (target.kind === 'redis-cluster') return new Cluster(target, clock, watcher);

  if (target.kind === 'redis-sentinel') {
    return new Link(target, (found) => locateMaster(target, clock, found), clock, watcher, IS_MASTER);
  }

  const [address] = target.hosts;
  return new Link(target, (found) => found(address, ''), clock, watcher);
}
