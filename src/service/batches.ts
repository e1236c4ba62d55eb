// Works off together the requests that arrive in one turn of the event loop, then writes their answers
// together: answered one by one a request costs 1.4 times as much processor time with 50 connections, 1.2
// times with four (Node 20 and 24). Trusts the responder never to throw. Does not order the answers:
// node:http does.
import type { Exchange } from './exchange.ts';
import type { Responder } from './responder.ts';

/** More never wait: Node reads on from a client until answers to it are there to be read. */
const LARGEST_BATCH = 64;

/** Gives what takes a request to be answered at the end of the turn. */
export function createBatches({ prepare }: Responder): (exchange: Exchange) => void {
  const queue: Exchange[] = [];

  function workOff(): void {
    const writes = queue.splice(0).map(prepare);
    for (const write of writes) {
      write?.();
    }
  }

  return (exchange) => {
    queue.push(exchange);
    if (queue.length === LARGEST_BATCH) workOff();
    else if (queue.length === 1) setImmediate(workOff);
  };
}
