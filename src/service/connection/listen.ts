// When a port begins to listen, for the service and for its metrics, and when it may close.
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../../verify/base/clock.ts';

/**
 * The port closes after QUIET_TURNS turns without a new connection; after QUIET_MILLIS, one such turn is
 * enough; after LOUD_MILLIS, none is needed.
 */
const QUIET_TURNS = 1_000;
const QUIET_MILLIS = 250;
const LOUD_MILLIS = 1_000;

/** Rejects with Node's error, plus `host` and `port`. */
export async function listen(server: Server, port: number, host: string | undefined) {
  server.listen({ port, host });
  await once(server, 'listening').catch((error) => {
    throw Object.assign(error, { port, host });
  });
  return server.address() as AddressInfo;
}

/** Closing at once would reset accepted connections that Node has not seen. */
export function whenQuiet(server: Server, clock: Clock, close: () => void) {
  const beganAtMillis = clock.monotonic();
  let turnsLeft = QUIET_TURNS;

  const turn = () => {
    turnsLeft -= 1;
    const millis = clock.monotonic() - beganAtMillis;
    const enough = millis < QUIET_MILLIS ? 0 : QUIET_TURNS - 2;
    if (turnsLeft > enough && millis < LOUD_MILLIS) setImmediate(turn);
    else close();
  };

  server.on('connection', () => {
    turnsLeft = QUIET_TURNS;
  });
  setImmediate(turn);
}
