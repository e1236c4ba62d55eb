// The service for a process of your own: uses clocks and standard output, but no signals, files or
// environment. Promises: several services can share a process; a stopped one does not keep it alive.
import { createMetrics } from '../options/metrics/metrics.ts';
import type { Routes } from '../service/routes/route.ts';
import type { CreateOptions } from './compose.ts';
import { createListeningService, problemsOf } from './compose-service.ts';
import { clock, createProcessLog } from '../options/log.ts';
import { SERVICE_SETTINGS, type GivenSettings } from '../settings/service-settings.ts';
import { checkGiven } from '../settings/in-code.ts';

/**
 * Creates a service. Throws `ConfigurationError` with every problem of the settings and of the routes.
 *
 * @example const url = await createService({ routes }, { domain, audience, port: 0 }).listen();
 */
export function createService(routes: Routes, given: GivenSettings, options?: CreateOptions) {
  const settings = checkGiven(SERVICE_SETTINGS, given, (some) => problemsOf(routes, some));
  const log = createProcessLog(settings.logLevel);
  const metrics = createMetrics('own table');
  const service = createListeningService(routes, settings, { clock, log, metrics }, options);

  return {
    /** Listens and resolves with the URL. Rejects if it cannot listen. */
    async listen() {
      const { port } = await service.listen();
      service.fetchKeys();
      // RFC 3986 §3.2.2: brackets around IPv6.
      const name = settings.host?.replace(/.*:.*/, '[$&]') ?? 'localhost';
      return `http://${name}:${port}`;
    },

    /** Drains: no new connections. Resolves within ten seconds. */
    stop: service.stop,
    /** The metrics as text for Prometheus (format 0.0.4). */
    metricsText: service.metricsText,
  };
}

/** Made by `createService`. */
export type Service = ReturnType<typeof createService>;
