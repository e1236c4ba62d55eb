// The gate for a server that exists. Loads an option when its setting is set, and nothing of routes, of a
// listener or of files. Promises: several gates live side by side, and none keeps the process alive.
import { SAME_ORIGIN } from '../gate/early.ts';
import { createGateChecks } from '../gate/gate.ts';
import { composeChecks, type CreateOptions, type OptionalParts, type Surroundings } from './compose.ts';
import { clock, openLog } from './log.ts';
import { checkSettings, type GivenSettings, type Settings } from './settings/load.ts';

/**
 * The checks alone, for a server that exists. Keys are fetched from now on; `isReady` tells whether they are
 * there. Rejects with `ConfigurationError`.
 *
 * @example const admission = await gate.admit(request, response, needs(scope('read:orders')));
 */
export async function createGate(settings: GivenSettings, options?: CreateOptions) {
  const checked = { ...checkSettings(settings), accessLog: false };
  const surroundings = { clock, log: openLog(checked.logLevel) };
  const parts = await loadParts(checked, surroundings);
  const checks = composeChecks(checked, surroundings, parts, options);
  checks.fetchKeys();

  return {
    ...createGateChecks(checks.identification, checks.replies),
    /** Whether keys are held to verify tokens with. */
    isReady: checks.isReady,
    /** Ends what it has under way. */
    close: checks.close,
  };
}

/** A gate that `createGate` has made. */
export type Gate = Awaited<ReturnType<typeof createGate>>;

/** Preflights are for the server behind the gate. */
async function loadParts(settings: Settings, { clock, log }: Surroundings): Promise<OptionalParts> {
  const { proxy, dpopReplayStore, resourceUrl, corsAllowedOrigins } = settings;
  const tunnel = proxy && (await import('../options/proxy-tunnel.ts'));
  const redis = dpopReplayStore && (await import('../options/redis-replay.ts'));
  const metadata = resourceUrl && (await import('../options/resource-metadata.ts'));
  const cors = corsAllowedOrigins.length > 0 && (await import('../options/cors.ts'));

  return {
    connect: tunnel ? tunnel.connectThrough(String(proxy)) : undefined,
    replayStore: redis ? redis.createSharedReplayStore(String(dpopReplayStore), clock, log) : undefined,
    early: metadata ? [metadata.createResourceMetadata(settings)] : [],
    crossOrigin: cors ? cors.createCors(settings) : SAME_ORIGIN,
  };
}
