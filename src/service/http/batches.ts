// Works off together the requests that arrive in one turn of the event loop, then writes their answers
// together: answered one by one a request costs 1.4 times as much processor time with 50 connections, 1.2
// times with four (Node 20 and 24). Trusts the responder never to throw. Does not order the answers:
// node:http does.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { andThen, type MaybePromise } from '../../verify/base/clock.ts';
import type { Reply } from '../../gate/reply.ts';
import { Exchange } from './exchange.ts';
import type { Responder } from './responder.ts';

/** More never wait: Node reads on from a client until answers to it are there to be read. */
const LARGEST_BATCH = 64;

/** Gives what takes a request to be answered at the end of the turn. */
export function createBatches({ noteArrival, work, write }: Responder) {
  const queue: Exchange[] = [];

  function finish(exchange: Exchange, reply: MaybePromise<Reply | undefined>): void {
    void andThen(reply, (one) => write(exchange, one));
  }

  function workOff(): void {
    const batch = queue.splice(0);
    const replies = batch.map((exchange) => exchange.run(work));
    for (const [index, exchange] of batch.entries()) exchange.run(finish, replies[index]);
  }

  return (request: IncomingMessage, response: ServerResponse): void => {
    queue.push(new Exchange(request, response, noteArrival()));
    if (queue.length === LARGEST_BATCH) workOff();
    else if (queue.length === 1) setImmediate(workOff);
  };
}
