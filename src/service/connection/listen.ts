// When a port begins to listen, for the service and for its metrics, and when it may close.
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../../verify/base/clock.ts';

/**
 * The port closes after QUIET_TURNS turns without a new connection; after QUIET_MILLIS, one such turn is
 * enough; after LOUD_MILLIS, none is needed. The last must be short: in a longer one, a connection may have
 * come that Node has not seen.
 */
const QUIET_TURNS = 1_000;
const QUIET_MILLIS = 250;
const LOUD_MILLIS = 1_000;
const SHORT_MILLIS = 0.1;

/** Rejects with Node's error, plus `host` and `port`. */
export async function listen(server: Server, port: number, host: string | undefined) {
  try {
    // Node throws at once where its permission model denies the network.
    server.listen({ port, host });
    await once(server, 'listening');
  } catch (error) {
    throw Object.assign(Object(error), { port, host });
  }

  return server.address() as AddressInfo;
}

/** Closing at once would reset accepted connections that Node has not seen. */
export function whenQuiet(server: Server, clock: Clock, close: () => void) {
  const beganAtMillis = clock.monotonic();
  let lastMillis = 0;
  let turnsLeft = QUIET_TURNS;

  const turn = () => {
    turnsLeft -= 1;
    const millis = clock.monotonic() - beganAtMillis;
    const enough = millis < QUIET_MILLIS ? 0 : QUIET_TURNS - 2;
    const isQuiet = turnsLeft <= enough && millis - lastMillis < SHORT_MILLIS;
    lastMillis = millis;
    if (!isQuiet && millis < LOUD_MILLIS) {
      setImmediate(turn);
      return;
    }

    // First of all: the first `close` of a process does other work for 0.3 ms. Node ignores a second close.
    Object(server)._handle?.close();
    close();
  };

  server.on('connection', () => {
    turnsLeft = QUIET_TURNS;
  });
  setImmediate(turn);
}
