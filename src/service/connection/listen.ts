// Listens on a port, for the service and for its metrics.
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Rejects with Node's error, plus `host` and `port`. */
export async function listen(server: Server, port: number, host: string | undefined) {
  server.listen({ port, host });
  await once(server, 'listening').catch((error) => {
    throw Object.assign(error, { port, host });
  });
  return server.address() as AddressInfo;
}
