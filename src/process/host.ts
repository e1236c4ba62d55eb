// Services and gates in a process that is somebody's own: with its clock and its standard output, without
// its signals, files and environment. Promises: several live side by side, and nothing of one that was
// stopped keeps the process alive.
import type { Clock } from '../verify/base/clock.ts';
import { createLog, type LogLevel } from '../verify/base/events.ts';
import type { Routes } from '../service/routes/route.ts';
import { checkSettings, type GivenSettings } from './settings/load.ts';
import { assembleChecks, assembleService, faultsOf, type CreateOptions } from './compose.ts';
import { createGateChecks } from '../gate/gate.ts';
import { createListener } from '../service/http/listener.ts';
import { createMetricsListener, listenBoth } from '../options/metrics/metrics-listener.ts';
import { createMetrics } from '../options/metrics/metrics.ts';

/** The clocks and the timer of this process. */
export const clock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),

  after(millis, action) {
    const timer = setTimeout(action, millis).unref();
    return () => clearTimeout(timer);
  },
};

/**
 * The lines of a turn, of all services in this process: written one by one each would cost a system call.
 */
let unwritten = '';

function writeLines() {
  process.stdout.write(unwritten);
  unwritten = '';
}

function writeLater(line: string) {
  if (unwritten === '') setImmediate(writeLines);
  unwritten += line;
}

const lose = () => {};

/** Lines on standard output, up to a bound of what nobody has read. */
export function openLog(leastLevel: LogLevel) {
  const { stdout } = process;
  // A reader that goes away takes the log with it, not the service; once each, however many logs there are.
  stdout.off('error', lose).on('error', lose);
  process.off('exit', writeLines).on('exit', writeLines);
  return createLog(leastLevel, writeLater, clock.now, () => stdout.writableLength + unwritten.length);
}

/** A service that does not listen yet, and has fetched nothing. Throws `ConfigurationError`. */
export function openService(...parts: Parameters<typeof assembleService>) {
  const service = assembleService(...parts);
  const { front, responder, metricsText, close } = service;
  const { server, stop } = createListener(responder, clock);
  const collected = createMetricsListener(metricsText, clock);
  let listening: unknown;

  return {
    ...service,

    listen: () => {
      const bound = listenBoth(front.settings, server, collected);
      listening = bound.catch(() => {});
      return bound;
    },

    stop: async () => {
      front.isStopping = true;
      // A connection of which nothing is read keeps no process alive, nor do the timers of a clock.
      const awake = setInterval(() => {}, 1_000);
      // What listens only then would listen for ever.
      await listening;
      const outcome = await stop(() => {
        front.isClosing = true;
      });
      collected.close();
      collected.closeAllConnections();
      close();
      clearInterval(awake);
      return outcome;
    },
  };
}

/**
 * A service without process, signals and files: for tests and for embedding. Several may live in one
 * process. Throws `ConfigurationError` with every problem of the settings and of the routes.
 *
 * @example const url = await createService({ routes }, { domain, audience, port: 0 }).listen();
 */
export function createService(routes: Routes, settings: GivenSettings, options?: CreateOptions) {
  const checked = checkSettings(settings, (some) => faultsOf(routes, some));
  const log = openLog(checked.logLevel);
  const metrics = createMetrics('own table');
  const service = openService(routes, checked, { clock, log, metrics }, options);

  return {
    /** Listens, and gives the URL. Rejects when the cannot listen. */
    listen: async () => {
      const { port } = await service.listen();
      service.fetchKeys();
      // RFC 3986 §3.2.2: an address of IPv6 stands in brackets.
      const name = checked.host?.replace(/.*:.*/, '[$&]') ?? 'localhost';
      return `http://${name}:${port}`;
    },

    /** Takes no new connections, and resolves when the last is gone, at the latest after ten seconds. */
    stop: service.stop,
    /** What was counted since it was made, as text for Prometheus (its format 0.0.4). */
    metricsText: service.metricsText,
  };
}

/** A service that `createService` has made. */
export type Service = ReturnType<typeof createService>;

/**
 * The checks alone, for a server that exists. Keys are fetched from now on; `isReady` tells whether they are
 * there. Rejects with `ConfigurationError`.
 *
 * @example const admission = await gate.admit(request, response, needs(scope('read:orders')));
 */
export async function createGate(settings: GivenSettings, options?: CreateOptions) {
  const checked = { ...checkSettings(settings), accessLog: false };
  const log = openLog(checked.logLevel);
  const { front, fetchKeys, isReady, close } = assembleChecks(checked, { clock, log }, options);
  fetchKeys();
  return {
    ...createGateChecks(front),
    /** Whether keys are held to judge tokens with. */
    isReady,
    /** Ends what it has under way. */
    close,
  };
}

/** A gate that `createGate` has made. */
export type Gate = Awaited<ReturnType<typeof createGate>>;
