// Works off together the requests that arrive in one turn of the event loop, then writes their answers
// together: answered one by one a request costs 1.4 times as much processor time with 50 connections, 1.2
// times with four (Node 20 and 24). Trusts the responder never to throw. Does not order the answers:
// node:http does.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Refused } from '../base/refusal.ts';
import { isGone, type Write } from '../reply/write.ts';
import type { Responder } from './responder.ts';

/** More never wait: Node reads on from a client until answers to it are there to be read. */
const LARGEST_BATCH = 64;

interface Waiting {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly refused: Refused | undefined;
}

/**
 * Takes a request, and what the listener has already found wrong with it, to be answered at the end of the
 * turn.
 */
export type Enqueue = (request: IncomingMessage, response: ServerResponse, refused?: Refused) => void;

export function createBatches(responder: Responder): Enqueue {
  const queue: Waiting[] = [];

  function prepare({ request, response, refused }: Waiting): Write | undefined {
    return isGone(request, response) ? undefined : responder.prepare(request, response, refused);
  }

  function workOff(): void {
    const writes = queue.splice(0).map(prepare);
    for (const write of writes) {
      write?.();
    }
  }

  return (request, response, refused) => {
    queue.push({ request, response, refused });
    if (queue.length === LARGEST_BATCH) workOff();
    else if (queue.length === 1) setImmediate(workOff);
  };
}
