// The part that counts, and the listener for its metrics. Promises: it has its own limits, and listens
// together with the service or not at all. Asks for no credentials: anyone who can reach it can read it.
import { createServer } from 'node:http';
import { systemClock, type Clock } from '../../verify/base/clock.ts';
import type { Endpoint, MetricsPart } from '../../gate/options.ts';
import {
  integer,
  readPlainOptions,
  textWithoutBlanks,
  Part,
  type Given,
  type RulesOf,
} from '../../verify/base/option.ts';
import { listen } from '../../service/connection/listen.ts';
import { Counting } from './metrics.ts';

interface MetricsValues {
  /** The port for scrapes, 1 to 65535. Default: none; serve what `text` returns. */
  readonly port: number | undefined;
  /** The address to listen on. Default: that of the service. */
  readonly host: string | undefined;
}

/** The options of `createMetrics`. */
export interface MetricsOptions extends Given<MetricsValues> {}

const METRICS_RULES: RulesOf<MetricsOptions> = { port: integer(1, 65_535), host: textWithoutBlanks };

/** Made by `createMetrics`. */
export interface MetricsWithText extends MetricsPart {
  /** All metrics for Prometheus (format 0.0.4). */
  readonly text: () => string;
}

/**
 * Counts what gates and services do: for the option `metrics`. With a port, only one service can use it.
 * Throws a `TypeError` for an option that is wrong.
 *
 * @example const metrics = createMetrics();
 */
export function createMetrics(options: MetricsOptions = {}): MetricsWithText {
  const { port, host } = readPlainOptions<MetricsValues>(options, METRICS_RULES, {}, 'metrics');
  return makeMetrics(port, host);
}

/** Port 0 picks a free one. */
export function makeMetrics(port: number | undefined, host: string | undefined): MetricsWithText {
  const { text, ...counting } = new Counting();
  const endpoint = port === undefined ? undefined : createEndpoint(port, host, text);
  const part: MetricsPart = Part.make('metrics', { ...counting, endpoint }, endpoint === undefined);
  return Object.assign(part, { text });
}

function createEndpoint(port: number, host: string | undefined, readText: () => string): Endpoint {
  const server = createMetricsListener(readText, systemClock);

  return {
    port,

    async listen(usualHost) {
      const bound = await listen(server, port, host ?? usualHost);
      return bound.port;
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
