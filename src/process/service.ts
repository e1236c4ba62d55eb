// The service for a process of your own: uses clocks and standard output, but no signals, files or
// environment. Promises: several services can share a process; a stopped one does not keep it alive.
import { open } from '../gate/access.ts';
import { ConfigurationError } from '../gate/configuration-error.ts';
import { SAME_ORIGIN } from '../gate/early.ts';
import type { Dependencies } from '../gate/observe.ts';
import { createCors } from '../options/cors.ts';
import { createMetricsListener, listenBoth } from '../options/metrics/metrics-listener.ts';
import { createMetrics, type Metrics } from '../options/metrics/metrics.ts';
import { connectThrough } from '../options/proxy-tunnel.ts';
import { createSharedReplayStore } from '../options/redis-replay.ts';
import { createResourceMetadata, metadataPaths, metadataUrlOf } from '../options/resource-metadata.ts';
import { createListener } from '../service/http/listener.ts';
import { createPipeline } from '../service/http/pipeline.ts';
import { createResponder, type Phase } from '../service/http/responder.ts';
import { get, type Routes } from '../service/routes/route.ts';
import { routesProblems } from '../service/routes/router.ts';
import { unavailable } from '../verify/base/refusal.ts';
import { composeChecks, type CreateOptions, type OptionalParts } from './compose.ts';
import { clock, createProcessLog } from './log.ts';
import { checkSettings, type GivenSettings, type Settings } from './service-settings.ts';
import type { SomeSettings } from './settings/load.ts';

interface ServiceDependencies extends Dependencies {
  readonly metrics?: Metrics | undefined;
}

const HEALTH_PATH = '/healthz';
const READINESS_PATH = '/readyz';

/**
 * Creates a service. Throws `ConfigurationError` with every problem of the settings and of the routes.
 *
 * @example const url = await createService({ routes }, { domain, audience, port: 0 }).listen();
 */
export function createService(routes: Routes, given: GivenSettings, options?: CreateOptions) {
  const settings = checkSettings(given, (some) => problemsOf(routes, some));
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

    /** Drains: no new connections. Resolves when the last one is gone, within ten seconds. */
    stop: service.stop,
    /** The metrics as text for Prometheus (format 0.0.4). */
    metricsText: service.metricsText,
  };
}

/** A service that `createService` has made. */
export type Service = ReturnType<typeof createService>;

/** Does not listen or fetch yet. Throws `ConfigurationError`. */
export function createListeningService(...parts: Parameters<typeof composeService>) {
  const [, settings] = parts;
  const service = composeService(...parts);
  const { phase, responder, metricsText, close } = service;
  const listener = createListener(responder, clock);
  const metricsServer = createMetricsListener(metricsText, clock);
  let listening: unknown;

  return {
    ...service,

    listen() {
      const bound = listenBoth(settings, listener.server, metricsServer);
      listening = bound.catch(() => {});
      return bound;
    },

    async stop() {
      phase.isStopping = true;
      // Neither paused connections nor unref'd timers keep the process alive.
      const awake = setInterval(() => {}, 1_000);
      // A server that begins to listen after `stop` would never close.
      await listening;
      const outcome = await listener.stop(() => {
        phase.isClosing = true;
      });
      metricsServer.close();
      metricsServer.closeAllConnections();
      close();
      clearInterval(awake);
      return outcome;
    },
  };
}

/** Throws `ConfigurationError`. */
export function composeService(
  served: Routes,
  settings: Settings,
  dependencies: ServiceDependencies,
  options?: CreateOptions,
) {
  demandServable(served, settings);

  const { clock, metrics } = dependencies;
  const parts = partsOf(withMethods(settings, served), dependencies);
  const checks = composeChecks(settings, dependencies, parts, options);
  const phase = { isStopping: false, isClosing: false };
  const probes = createProbes(phase, checks.isReady);
  metrics?.foreseeRoutes([...probes, ...served.routes]);
  const pipeline = createPipeline(served, checks.identification, { clock, ...settings }, probes);

  return {
    ...checks,
    phase,
    responder: createResponder(pipeline, checks.replies, checks.observer, phase),
    metricsText: () => metrics?.read(checks.issuers, checks.replayStore) ?? '',
  };
}

export function partsOf(settings: Settings, { clock, log }: Dependencies): OptionalParts {
  const { proxy, dpopReplayStore: store, resourceUrl, corsAllowedOrigins } = settings;
  const cors = corsAllowedOrigins.length > 0 ? createCors(settings) : undefined;
  const metadata = resourceUrl ? [createResourceMetadata(settings, log)] : [];

  return {
    connect: proxy === undefined ? undefined : connectThrough(proxy),
    replayStore: store === undefined ? undefined : createSharedReplayStore(store, clock, log),
    early: cors === undefined ? metadata : [...metadata, cors.preflight],
    metadataUrl: resourceUrl && metadataUrlOf(resourceUrl),
    crossOrigin: cors ?? SAME_ORIGIN,
  };
}

/** The default of `corsAllowedMethods`: every method of the routes. */
function withMethods(settings: Settings, { routes }: Routes) {
  const methods = new Set(['GET', ...routes.map(({ method }) => method)]);
  const { corsAllowedMethods: given } = settings;
  return { ...settings, corsAllowedMethods: given.length > 0 ? given : [...methods] };
}

const createProbes = (phase: Phase, isReady: () => boolean) => [
  get(HEALTH_PATH, open, () => ({ status: 'ok' })),
  get(READINESS_PATH, open, () => readinessOf(phase, isReady)),
];

/** Throws `Refused`. */
function readinessOf({ isStopping }: Phase, isReady: () => boolean) {
  if (isStopping) throw unavailable('shutting-down');
  if (!isReady()) throw unavailable('keys-unavailable');

  return { status: 'ready' };
}

function demandServable(routes: Routes, settings: Settings) {
  const problems = problemsOf(routes, settings);
  if (problems.length > 0) throw new ConfigurationError(problems);
}

export function problemsOf(routes: Routes, { resourceUrl }: SomeSettings = {}) {
  const metadata = typeof resourceUrl === 'string' ? metadataPaths(resourceUrl) : [];
  return routesProblems(routes, [...new Set([HEALTH_PATH, READINESS_PATH, ...metadata])]);
}
