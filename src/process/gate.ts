// The checks for a server that you already have. Promises: loads an option only if it is set, and no routes,
// listener or settings files; several gates can live in one process, and none keeps it alive.
import { SAME_ORIGIN } from '../gate/early.ts';
import { createGateChecks } from '../gate/gate.ts';
import type { Dependencies } from '../gate/observe.ts';
import { composeChecks, type CreateOptions, type OptionalParts } from './compose.ts';
import { clock, createProcessLog } from './log.ts';
import { checkSettings, type GivenSettings, type Settings } from './settings/load.ts';

/**
 * Creates the checks and starts to fetch keys; `isReady` says when they are there. Rejects with
 * `ConfigurationError`.
 *
 * @example const admission = await gate.admit(request, response, needs(scope('read:orders')));
 */
export async function createGate(given: GivenSettings, options?: CreateOptions) {
  // A gate never sees the response, so it has no access log.
  const settings = { ...checkSettings(given), accessLog: false };
  const dependencies = { clock, log: createProcessLog(settings.logLevel) };
  const parts = await loadParts(settings, dependencies);
  const checks = composeChecks(settings, dependencies, parts, options);
  checks.fetchKeys();

  return {
    ...createGateChecks(checks.identification, checks.replies, clock),
    /** Whether there are keys to verify tokens with. */
    isReady: checks.isReady,
    /** Ends all work. */
    close: checks.close,
  };
}

/** A gate that `createGate` has made. */
export type Gate = Awaited<ReturnType<typeof createGate>>;

/** Leaves preflights to the server behind the gate. */
async function loadParts(settings: Settings, { clock, log }: Dependencies): Promise<OptionalParts> {
  const { proxy, dpopReplayStore, resourceUrl, corsAllowedOrigins } = settings;
  const tunnel = proxy && (await import('../options/proxy-tunnel.ts'));
  const redis = dpopReplayStore && (await import('../options/redis-replay.ts'));
  const metadata = resourceUrl && (await import('../options/resource-metadata.ts'));
  const cors = corsAllowedOrigins.length > 0 && (await import('../options/cors.ts'));

  return {
    connect: tunnel ? tunnel.connectThrough(proxy) : undefined,
    replayStore: redis ? redis.createSharedReplayStore(dpopReplayStore, clock, log) : undefined,
    early: metadata ? [metadata.createResourceMetadata(settings)] : [],
    metadataUrl: metadata ? metadata.metadataUrlOf(resourceUrl) : undefined,
    crossOrigin: cors ? cors.createCors(settings) : SAME_ORIGIN,
  };
}
