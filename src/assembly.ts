/*
 * Settings → the service: keys, verifier, tables and pipeline put together.
 * Promises: nothing is fetched or listened on yet; the rows for health belong to both profiles.
 */
import { createApp, type App } from './app.ts';
import { createCors } from './http/cors.ts';
import type { JsonObject } from './encoding.ts';
import { KeySet, type Clock } from './keys/key-set.ts';
import type { Log } from './log.ts';
import { policyA, policyRowsA, rowsA } from './profiles/a.ts';
import { rowsB } from './profiles/b.ts';
import { unavailable } from './refusal.ts';
import { get, open, type Row } from './route.ts';
import type { Settings } from './settings/settings.ts';
import { createTokenVerifier } from './token/verify.ts';

/** What a process gives the service. `fetchKeys` rejects with `FetchFailure`. */
export interface Surroundings {
  readonly clock: Clock;
  readonly log: Log;
  readonly fetchKeys: () => Promise<JsonObject>;
  readonly isStopping: () => boolean;
}

export interface Service {
  readonly app: App;
  /** Call `refresh` once at the start; after that requests keep the keys fresh. */
  readonly keys: KeySet;
}

/** The rows of the profile that the settings choose. */
export function tableOf({ profile, scopePolicy, orgId }: Settings): readonly Row[] {
  if (profile === 'B') return rowsB(orgId);
  return scopePolicy ? [...rowsA, ...policyRowsA] : rowsA;
}

/** Puts a service together. Throws an `Error` when rows overlap. */
export function assemble(settings: Settings, { clock, log, fetchKeys, isStopping }: Surroundings): Service {
  const keys = new KeySet(fetchKeys, clock, log);
  const health: Row[] = [
    get('/healthz', open, () => ({ status: 'ok' })),
    get('/readyz',  open, () => readiness(keys, isStopping())),
  ];
  const app = createApp({
    rows: [...health, ...tableOf(settings)],
    policy: settings.scopePolicy ? policyA : [],
    verifyToken: createTokenVerifier(settings, keys, settings.tokenCacheEntries),
    rules: settings,
    cors: createCors(settings),
    log,
    now: clock.now,
    isStopping,
  });
  return { app, keys };
}

function readiness(keys: KeySet, isStopping: boolean): object {
  if (isStopping) throw unavailable('shutting-down', 1);
  if (!keys.isReady()) throw unavailable('keys-unavailable', 1);
  return { status: 'ready' };
}
