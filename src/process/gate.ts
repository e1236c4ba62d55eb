// The checks for a server that you already have. Promises: loads an option only if it is set; several gates
// can share a process, and none keeps it alive. Loads no routes, listener or settings files.
import { types } from 'node:util';
import { SAME_ORIGIN } from '../gate/early.ts';
import { createGateChecks } from '../gate/gate.ts';
import type { Dependencies } from '../gate/observe.ts';
import { composeChecks, type CreateOptions, type OptionalParts } from './compose.ts';
import { clock, createProcessLog } from './log.ts';
import type { GivenSettings, Settings } from './service-settings.ts';
import { checkGiven } from './settings/in-code.ts';
import { BASIC_SETTINGS, ISSUER_SETTINGS } from './settings/table.ts';

/**
 * Creates the checks and starts to fetch keys. Rejects with `ConfigurationError`.
 *
 * @example const gate = await createGate({ domain: 'idp.test', audience: 'https://api.test' });
 */
export async function createGate(given: GivenSettings, options?: CreateOptions) {
  const { settings, loadParts } = isBasic(given) ? withoutOptions(given) : await withOptions(given);
  const dependencies = { clock, log: createProcessLog(settings.logLevel) };
  const parts = await loadParts(dependencies);
  const checks = composeChecks({ ...settings, accessLog: false }, dependencies, parts, options);
  checks.fetchKeys();

  return {
    ...createGateChecks(checks.identification, checks.replies, clock),
    isReady: checks.isReady,
    /** Ends what runs in the background. */
    close: checks.close,
  };
}

/** Made by `createGate`. */
export type Gate = Awaited<ReturnType<typeof createGate>>;

/**
 * Whether no option is set. A prototype, an unknown name, or a name that a Proxy object hides might set an
 * option.
 */
const isBasic = (given: object) =>
  Object(given) === given &&
  !types.isProxy(given) &&
  Reflect.getPrototypeOf(given) === Object.prototype &&
  Reflect.ownKeys(given).every((name) => name in BASIC_NAMES);

const BASIC_NAMES = { ...ISSUER_SETTINGS, ...BASIC_SETTINGS, issuers: {} };

const NO_PARTS: OptionalParts = { early: [], crossOrigin: SAME_ORIGIN };

const withoutOptions = (given: GivenSettings) => ({
  settings: checkGiven(BASIC_SETTINGS, given),
  loadParts: () => NO_PARTS,
});

async function withOptions(given: GivenSettings) {
  const { OPTION_SETTINGS } = await import('../options/settings.ts');
  const settings = checkGiven({ ...BASIC_SETTINGS, ...OPTION_SETTINGS }, given);
  return { settings, loadParts: (dependencies: Dependencies) => partsOf(settings, dependencies) };
}

/** Preflights are for the server behind the gate. */
async function partsOf(settings: Settings, { clock, log }: Dependencies): Promise<OptionalParts> {
  const { proxy, dpopReplayStore, resourceUrl, corsAllowedOrigins } = settings;
  const tunnel = proxy && (await import('../options/proxy-tunnel.ts'));
  const redis = dpopReplayStore && (await import('../options/redis-replay.ts'));
  const metadata = resourceUrl && (await import('../options/resource-metadata.ts'));
  const cors = corsAllowedOrigins.length > 0 && (await import('../options/cors.ts'));

  return {
    connect: tunnel ? tunnel.connectThrough(proxy) : undefined,
    replayStore: redis ? redis.createSharedReplayStore(dpopReplayStore, clock, log) : undefined,
    early: metadata ? [metadata.createResourceMetadata(settings, log)] : [],
    metadataUrl: metadata ? metadata.metadataUrlOf(resourceUrl) : undefined,
    nameScopes: metadata ? metadata.nameScopes : undefined,
    crossOrigin: cors ? cors.createCors(settings) : SAME_ORIGIN,
  };
}
