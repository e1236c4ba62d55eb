// The whole service in a process that is somebody's own: with its clocks and its standard output, without
// its signals, files and environment. Promises: several live side by side, and nothing of one that was
// stopped keeps the process alive.
import { open } from '../gate/access.ts';
import { ConfigurationError } from '../gate/configuration-error.ts';
import { SAME_ORIGIN } from '../gate/early.ts';
import { metadataPaths } from '../gate/path.ts';
import { createCors } from '../options/cors.ts';
import { createMetricsListener, listenBoth } from '../options/metrics/metrics-listener.ts';
import { createMetrics, type Metrics } from '../options/metrics/metrics.ts';
import { connectThrough } from '../options/proxy-tunnel.ts';
import { createSharedReplayStore } from '../options/redis-replay.ts';
import { createResourceMetadata } from '../options/resource-metadata.ts';
import { createListener } from '../service/http/listener.ts';
import { createPipeline } from '../service/http/pipeline.ts';
import { createResponder, type Phase } from '../service/http/responder.ts';
import { get, type Routes } from '../service/routes/route.ts';
import { routesProblems } from '../service/routes/router.ts';
import { unavailable } from '../verify/base/refusal.ts';
import { composeChecks, type CreateOptions, type OptionalParts, type Surroundings } from './compose.ts';
import { clock, openLog } from './log.ts';
import { checkSettings, type GivenSettings, type Settings, type SomeSettings } from './settings/load.ts';

/** The surroundings of a service, whose metrics can be read. */
interface ServiceSurroundings extends Surroundings {
  readonly metrics?: Metrics | undefined;
}

/** Routes behind the checks. Throws `ConfigurationError` when they cannot be served. */
export function composeService(
  served: Routes,
  settings: Settings,
  surroundings: ServiceSurroundings,
  options?: CreateOptions,
) {
  const problems = faultsOf(served, settings);
  if (problems.length > 0) throw new ConfigurationError(problems);

  const phase = { isStopping: false, isClosing: false };
  const ownRoutes = probes(() => readinessOf(phase, checks));
  const routes = [...ownRoutes, ...served.routes];
  surroundings.metrics?.foreseeRoutes(routes);
  const parts = partsOf(withMethods(settings, routes), surroundings);
  const checks = composeChecks(settings, surroundings, parts, options);
  const { identification, replies, observer, issuers, usedProofs } = checks;
  const limits = { clock: surroundings.clock, ...settings };
  const pipeline = createPipeline(served, identification, limits, ownRoutes);

  return {
    ...checks,
    phase,
    responder: createResponder(pipeline, replies, observer, phase),
    /** What was counted and is now, as text for Prometheus. */
    metricsText: () => surroundings.metrics?.read(issuers, usedProofs) ?? '',
  };
}

/** The process has keys to verify tokens with, and is not about to end. Throws `Refused`. */
function readinessOf({ isStopping }: Phase, { isReady }: { isReady: () => boolean }) {
  if (isStopping) throw unavailable('shutting-down');
  if (!isReady()) throw unavailable('keys-unavailable');

  return { status: 'ready' };
}

/** What other origins may use: without a setting the methods that the routes have. */
function withMethods(settings: Settings, routes: Routes['routes']) {
  const methods = new Set(routes.map(({ method }) => method));
  const { corsAllowedMethods: set } = settings;
  return { ...settings, corsAllowedMethods: set.length > 0 ? set : [...methods] };
}

/** The parts that the settings ask for. */
export function partsOf(settings: Settings, { clock, log }: Surroundings): OptionalParts {
  const { proxy, dpopReplayStore, resourceUrl, corsAllowedOrigins } = settings;
  const cors = corsAllowedOrigins.length > 0 ? createCors(settings) : undefined;
  const metadata = resourceUrl ? [createResourceMetadata(settings)] : [];

  return {
    connect: proxy === undefined ? undefined : connectThrough(proxy),
    replayStore:
      dpopReplayStore === undefined ? undefined : createSharedReplayStore(dpopReplayStore, clock, log),
    early: cors === undefined ? metadata : [...metadata, cors.preflight],
    crossOrigin: cors ?? SAME_ORIGIN,
  };
}

/**
 * Why a service with these settings cannot have these routes; of those that are at fault nothing is known.
 */
export function faultsOf(routes: Routes, { resourceUrl }: SomeSettings = {}) {
  const ownPaths = probes().map(({ pattern }) => pattern);
  const more = typeof resourceUrl === 'string' ? metadataPaths(resourceUrl) : [];
  return routesProblems(routes, [...new Set([...ownPaths, ...more])]);
}

const probes = (readReadiness = (): object => ({})) => [
  get('/healthz', open, () => ({ status: 'ok' })),
  get('/readyz', open, readReadiness),
];

/** A service that does not listen yet, and has fetched nothing. Throws `ConfigurationError`. */
export function openService(...parts: Parameters<typeof composeService>) {
  const [, settings] = parts;
  const service = composeService(...parts);
  const { phase, responder, metricsText, close } = service;
  const { server, stop } = createListener(responder, clock);
  const collected = createMetricsListener(metricsText, clock);
  let listening: unknown;

  return {
    ...service,

    listen: () => {
      const bound = listenBoth(settings, server, collected);
      listening = bound.catch(() => {});
      return bound;
    },

    stop: async () => {
      phase.isStopping = true;
      // A connection of which nothing is read keeps no process alive, nor do the timers of a clock.
      const awake = setInterval(() => {}, 1_000);
      // What listens only then would listen for ever.
      await listening;
      const outcome = await stop(() => {
        phase.isClosing = true;
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
    /** Listens, and gives the URL. Rejects when it cannot listen. */
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
