// The listener for metrics. Promises: it has its own limits, and listens together with the service or not at
// all. Does not ask for credentials: anyone who can reach it can read it.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../../verify/base/clock.ts';

interface Ports {
  readonly port: number;
  readonly host: string | undefined;
  readonly metricsPort: number | undefined;
  readonly metricsHost: string | undefined;
}

export function createMetricsListener(readText: () => string, clock: Clock) {
  // Explicit, so that NODE_OPTIONS cannot turn it on.
  const server = createServer({ insecureHTTPParser: false }, ({ method, url }, response) => {
    // A request after the last response.
    if (response.socket === null) return;

    const isFound = /^(?:GET|HEAD) \/metrics(?:\?|$)/.test(`${method} ${url}`);
    response.statusCode = isFound ? 200 : 404;
    response.setHeader('Content-Type', 'text/plain; version=0.0.4; charset=utf-8');
    // One request per connection, so its time limit bounds the request.
    response.shouldKeepAlive = false;
    response.end(isFound ? readText() : '');
  });

  server.maxConnections = 20;
  server.on('connection', (socket) => {
    socket.on(
      'close',
      clock.after(5_000, () => socket.destroy()),
    );
  });
  return server;
}

/** Rejects with Node's error, plus `host` and `port`. */
export async function listenBoth(
  { port, host, metricsPort, metricsHost = host }: Ports,
  server: Server,
  collected: Server,
) {
  const beside = metricsPort === undefined ? undefined : await listen(collected, metricsPort, metricsHost);
  const bound = await listen(server, port, host).catch((failure) => {
    collected.close();
    throw failure;
  });
  return { port: bound.port, metricsPort: beside?.port, address: bound.address };
}

async function listen(server: Server, port: number, host?: string) {
  server.listen({ port, host });
  await once(server, 'listening').catch((failure) => {
    throw Object.assign(failure, { port, host });
  });
  return server.address() as AddressInfo;
}
