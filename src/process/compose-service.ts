// Composes a service from its settings: routes behind the checks, what the options add, and the listener.
import { open } from '../gate/rules/access.ts';
import { ConfigurationError } from '../settings/configuration-error.ts';
import { SAME_ORIGIN } from '../gate/replies/refusal-replies.ts';
import type { Dependencies } from '../gate/observe.ts';
import { createCors } from '../options/cors.ts';
import { createQuestionReaders } from '../options/forward-auth.ts';
import { createMetricsListener, listenBoth } from '../options/metrics/metrics-listener.ts';
import type { Metrics } from '../options/metrics/metrics.ts';
import { connectThrough } from '../options/proxy.ts';
import { createSharedReplayStore } from '../options/redis.ts';
import {
  createResourceMetadata,
  metadataPaths,
  metadataUrlOf,
  nameScopes,
} from '../options/resource-metadata.ts';
import { createListener } from '../service/connection/listener.ts';
import { readFacts } from '../verify/request/facts.ts';
import { createPipeline, type Readers } from '../service/request/pipeline.ts';
import { createResponder } from '../service/request/responder.ts';
import type { Early } from '../gate/record.ts';
import { get, type Route, type Routes } from '../service/routes/route.ts';
import { createRouter, routesProblems } from '../service/routes/router.ts';
import { unavailable } from '../verify/base/refusal.ts';
import { composeChecks, type CreateOptions, type OptionalParts } from './compose.ts';
import { clock } from '../options/log.ts';
import type { Settings } from '../settings/service-settings.ts';
import type { SomeSettings } from '../settings/load.ts';

interface ServiceDependencies extends Dependencies {
  readonly metrics?: Metrics | undefined;
}

interface Phase {
  isStopping: boolean;
}

const HEALTH_PATH = '/healthz';
const READINESS_PATH = '/readyz';

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
      const outcome = await listener.stop();
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
  requireServable(problemsOf(served, settings));

  const { clock, metrics } = dependencies;
  const parts = partsOf(settings, dependencies, served);
  const checks = composeChecks(settings, dependencies, parts, options);
  const phase: Phase = { isStopping: false };
  const probes = createProbes(phase, checks.isReady);
  metrics?.foreseeRoutes([...probes, ...served.routes]);
  const createReaders = served.isPolicy ? createQuestionReaders : createRouteReaders;
  const readers = createReaders(served, probes, checks.early);
  const pipeline = createPipeline(readers, checks.decide, { clock, ...settings });

  return {
    ...checks,
    phase,
    responder: createResponder(pipeline, checks.replies, checks.observer),
    metricsText: () => metrics?.read(checks.issuers, checks.replayStore) ?? '',
  };
}

/** The request itself is what is asked about. */
export function createRouteReaders(
  { routes, rules }: Routes,
  ownRoutes: readonly Route[],
  early: Early,
): Readers {
  const matchPath = createRouter(routes, rules, ownRoutes);
  return { readFacts, early, matchRoute: ({ path }) => matchPath(path) };
}

export function partsOf(
  settings: Settings,
  { clock, log }: Dependencies,
  { routes, isPolicy = false }: Routes = { routes: [] },
): OptionalParts {
  const { proxy, dpopReplayStore: store, resourceUrl, corsAllowedOrigins } = settings;
  const cors = corsAllowedOrigins.length > 0 ? createCors(settings, routes) : undefined;
  const metadata = resourceUrl ? [createResourceMetadata(settings, log)] : [];

  return {
    connect: proxy === undefined ? undefined : connectThrough(proxy),
    replayStore: store === undefined ? undefined : createSharedReplayStore(store, clock, log),
    early: cors === undefined ? metadata : [...metadata, cors.preflight],
    metadataUrl: resourceUrl && metadataUrlOf(resourceUrl),
    nameScopes: resourceUrl ? nameScopes : undefined,
    crossOrigin: cors ?? SAME_ORIGIN,
    joinsChallenges: isPolicy,
  };
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

function requireServable(problems: readonly string[]) {
  if (problems.length > 0) throw new ConfigurationError(problems);
}

export function problemsOf(routes: Routes, { resourceUrl }: SomeSettings = {}) {
  const metadata = typeof resourceUrl === 'string' ? metadataPaths(resourceUrl) : [];
  // A proxy may ask about probes of the server behind it.
  const probes = Object(routes).isPolicy ? [] : [HEALTH_PATH, READINESS_PATH];
  return routesProblems(routes, [...new Set([...probes, ...metadata])]);
}
