/* A server in this process, on a free loopback port. */
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ask, type Response, type Ask } from './client.ts';

export interface Served {
  readonly port: number;
  ask(path: string, request?: Ask): Promise<Response>;
  /** Resolves when it has closed, with every connection. */
  stop(): Promise<void>;
}

export async function serve(server: Server): Promise<Served> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    ask: (path, request) => ask(port, path, request),
    stop: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
