// The listener for metrics. Promises: it has its own limits, and listens together with the service or not at
// all. Does not ask for credentials: anyone who can reach it can read it.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { systemClock, type Clock } from '../../verify/base/clock.ts';
import type { Endpoint } from '../../gate/options.ts';

export function createEndpoint(port: number, host: string | undefined, readText: () => string): Endpoint {
  const server = createMetricsListener(readText, systemClock);

  return {
    port,

    async listen(usualHost) {
      const place = { port, host: host ?? usualHost };
      server.listen(place);
      await once(server, 'listening').catch((error) => {
        throw Object.assign(error, place);
      });
      const address = server.address();
      return typeof address === 'object' && address !== null ? address.port : port;
    },

    close() {
      server.close();
      server.closeAllConnections();
    },
  };
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
