// Routes, settings and what a process gives → the parts of a service, put together. Connects to the store
// that replicas share, if there is one; does not fetch, listen or read anything.
import type { JsonObject } from '../verify/base/encoding.ts';
import { unavailable } from '../verify/base/refusal.ts';
import { createKeyFetcher } from '../verify/keys/fetch.ts';
import { createKeySet } from '../verify/keys/key-set.ts';
import { metadataPaths } from '../gate/path.ts';
import { open } from '../gate/access.ts';
import { routesProblems } from '../service/routes/router.ts';
import { get, type Routes } from '../service/routes/route.ts';
import { createSenderCheck } from '../verify/caller.ts';
import { createSharedReplayStore } from '../options/redis-replay.ts';
import { createReplayStore } from '../verify/dpop/replay.ts';
import {
  ConfigurationError,
  type IssuerSettings,
  type Settings,
  type SomeSettings,
} from './settings/load.ts';
import { createTokenVerifier } from '../verify/token/verify.ts';
import { createFront } from '../gate/front.ts';
import type { Dependencies } from '../service/http/observe.ts';
import { createResponder } from '../service/http/responder.ts';

/** What a service or a gate is given beside its settings; a test issuer will do. */
export interface CreateOptions {
  /** Instead of fetching the key set of an issuer from its provider: for tests. */
  readonly fetchKeys?: (issuer: IssuerSettings, name: string) => Promise<JsonObject>;
  /**
   * Called once with what was thrown, for everything that becomes a 500. What it throws itself is ignored.
   */
  readonly onError?: (error: unknown) => unknown;
}

/** What a service and a gate are made of alike. */
export function assembleChecks(
  settings: Settings,
  dependencies: Dependencies,
  { fetchKeys: fetchInstead, onError }: CreateOptions = {},
) {
  const { clock, log, metrics } = dependencies;
  if (fetchInstead !== undefined) log('signing keys not from the provider', {});

  const issuers = Object.entries(settings.issuers).map(([name, issuer]) => {
    const fetcher = fetchInstead
      ? () => fetchInstead(issuer, name)
      : createKeyFetcher(issuer, settings.proxy);
    const keys = createKeySet(name, fetcher, clock, log, metrics?.add);
    return { ...issuer, name, clockToleranceSeconds: settings.clockToleranceSeconds, keys };
  });

  function openReplayStore() {
    const { dpopReplayStore, dpopIatOffsetSeconds, dpopIatLeewaySeconds } = settings;
    if (dpopReplayStore !== undefined) return createSharedReplayStore(dpopReplayStore, clock, log);

    const windowSeconds = dpopIatOffsetSeconds + dpopIatLeewaySeconds;
    return createReplayStore(windowSeconds, undefined, () => log('replay store full', {}));
  }

  const replayStore = openReplayStore();
  const verifyToken = createTokenVerifier(issuers, clock, settings.tokenCacheEntries, metrics?.add);
  const checkSender = createSenderCheck(settings, replayStore, metrics?.add);
  const front = createFront(settings, { ...dependencies, onError }, verifyToken, checkSender);

  return {
    front,
    /** The first one first. */
    issuers,

    /** Call it once at the start; after that requests keep the keys fresh. */
    fetchKeys: () => issuers.map(({ keys }) => keys.refresh()),

    /** Whether there are keys to judge tokens with. */
    isReady: () =>
      // All are asked, since asking keeps keys fresh.
      issuers.filter(({ keys }) => keys.usable() > 0).length > 0 &&
      // Choice: only the first one's fault holds up a rollout, while it has never had keys.
      issuers[0]?.keys.ageMillis() !== Infinity,

    /** What was counted and is now, as text for Prometheus. */
    metricsText: () => metrics?.read(issuers, replayStore) ?? '',

    /** Ends what is under way, and sums up what was refused. */
    close: () => {
      for (const { keys } of issuers) keys.close();
      replayStore.close?.();
      front.summarize();
    },
  };
}

/** Routes behind these checks. Throws `ConfigurationError` when they cannot be served. */
export function assembleService(
  served: Routes,
  settings: Settings,
  dependencies: Dependencies,
  options?: CreateOptions,
) {
  const problems = faultsOf(served, settings);
  if (problems.length > 0) throw new ConfigurationError(problems);

  /** The process has keys to judge tokens with, and is not about to end. Throws `Refused`. */
  function readiness() {
    if (checks.front.isStopping) throw unavailable('shutting-down');
    if (!checks.isReady()) throw unavailable('keys-unavailable');

    return { status: 'ready' };
  }

  const ownRoutes = probes(readiness);
  const routes = [...ownRoutes, ...served.routes];
  const methods = routes.map(({ method }) => method);
  const set = settings.corsAllowedMethods;
  // What other origins may use: without a setting the methods that the routes have.
  const corsAllowedMethods = set.length > 0 ? set : [...new Set(methods)];
  const checks = assembleChecks({ ...settings, corsAllowedMethods }, dependencies, options);
  dependencies.metrics?.foreseeRoutes(routes);
  return { ...checks, responder: createResponder(served, checks.front, ownRoutes) };
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
