// Host names → addresses, one question at a time for each name. Node has few threads that ask, and each waits
// for as long as the system does: asked for again at every attempt, one dead name would take them all, and
// the keys of no other issuer could be fetched. Promises: a name takes one thread at most.
import dns from 'node:dns';
import type { LookupFunction } from 'node:net';

type Answered = Parameters<LookupFunction>[2];

/** Who waits for an answer, by name. */
const asking = new Map<string, Answered[]>();

/** For connections, in place of Node's own. */
export const lookupOnce: LookupFunction = (name, options, answered) => {
  const waiting = asking.get(name) ?? [];
  waiting.push(answered);
  if (waiting.length > 1) return;

  asking.set(name, waiting);
  dns.lookup(name, options, (...answer) => {
    asking.delete(name);
    for (const tell of waiting) tell(...answer);
  });
};
