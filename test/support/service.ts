/* Starts the service for tests in this process, with a test's clock. */
import { routesOf } from '../../src/profiles/routes.ts';
import { composeService } from '../../src/service/create-service.ts';
import type { Keys } from '../../src/verify/keys/key-set.ts';
import { Listener } from '../../src/service/connection/listener.ts';
import type { FetchKeys } from '../../src/verify/options.ts';
import type { Provider } from '../idp/provider.ts';
import { TestClock } from './clock.ts';
import { providerSettings } from './process.ts';
import { serve, type Served } from './serve.ts';
import {
  createTestLog,
  kindWith,
  settingsFrom,
  valuesOf,
  type Environment,
  type TestSettings,
} from './settings.ts';

export interface TestService extends Served {
  readonly settings: TestSettings;
  readonly clock: TestClock;
  /** Those of the first issuer. */
  readonly keys: Keys;
  /** Those of every issuer, the first one first. */
  readonly keySets: readonly Keys[];
  /** Every log line so far, parsed. */
  readonly logs: readonly Record<string, any>[];
  /** Makes the service behave as during shutdown. */
  beginStopping(): void;
}

export interface InProcess {
  readonly provider: Provider;
  readonly environment?: Environment;
  readonly clock?: TestClock;
  /** Replaces fetching from the provider. */
  readonly fetchKeys?: FetchKeys;
  /** Does not fetch keys before the first request. */
  readonly cold?: boolean;
}

/** Runs the service in this process on a free port, with keys fetched from the provider. */
export async function startService(plan: InProcess): Promise<TestService> {
  const { provider, environment = {}, clock = new TestClock(), cold = false } = plan;
  const settings = settingsFrom({ ...providerSettings(provider), LOG_LEVEL: 'debug', ...environment });
  const { log, logs } = createTestLog(clock, settings.logLevel, settings.accessLog);
  const values = await valuesOf(settings, { log, fetchKeys: plan.fetchKeys });
  const service = composeService(routesOf(settings), values, kindWith(clock, { name: settings.profile }));
  const { phase, issuers, responder, close } = service;
  const keySets = issuers.map((issuer) => issuer.keys);
  const keys = keySets[0]!;
  const { server } = new Listener(responder, new TestClock(clock.now()), 15_000);
  const served = await serve(server);
  if (!cold) await Promise.all(keySets.map((each) => each.refresh()));
  return {
    ...served,
    settings,
    clock,
    keys,
    keySets,
    logs,
    beginStopping: () => {
      phase.isStopping = true;
    },
    stop: async () => {
      await served.stop();
      close();
    },
  };
}
