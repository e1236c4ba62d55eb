// Host names → addresses, one question at a time for each name. Node has few threads that ask, and each
// waits for as long as the system does: asked for again at every attempt, one dead name would take them
// all, and the keys of no other issuer could be fetched. Promises: a name takes one thread at most.
import dns from 'node:dns';
import type { LookupFunction } from 'node:net';

type Callback = Parameters<LookupFunction>[2];

/** Who waits for an answer, by name. */
const asking = new Map<string, Callback[]>();

/** For connections, in place of Node's own. */
export const lookupOnce: LookupFunction = (name, options, callback) => {
  const waiting = asking.get(name) ?? [];
  waiting.push(callback);
  if (waiting.length > 1) return;

  asking.set(name, waiting);
  dns.lookup(name, options, (...result) => {
    asking.delete(name);
    for (const each of waiting) each(...result);
  });
};
