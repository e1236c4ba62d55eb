// Table, settings and what a process gives → the parts of a service, put together. Does not fetch, listen or read anything.
import type { Clock } from '../base/clock.ts';
import type { JsonObject } from '../base/encoding.ts';
import type { Log } from '../base/events.ts';
import { unavailable } from '../base/refusal.ts';
import { KeySet } from '../keys/key-set.ts';
import { createCors } from '../reply/cors.ts';
import { open } from '../routes/access.ts';
import { get, type Row, type Table } from '../routes/row.ts';
import { createSenderCheck } from '../sender/caller.ts';
import { createNonces } from '../sender/dpop-nonce.ts';
import { createProofVerifier } from '../sender/dpop-proof.ts';
import { createReplayStore } from '../sender/replay.ts';
import type { Settings } from '../settings/load.ts';
import { createTokenVerifier } from '../token/verify.ts';
import { createObserver, type Observer } from './observe.ts';
import { createPipeline, type Pipeline } from './pipeline.ts';

/** What a process gives the service. */
export interface Surroundings {
  readonly clock: Clock;
  readonly log: Log;
  /** Rejects with `FetchFailure`. */
  readonly fetchKeys: () => Promise<JsonObject>;
  readonly isStopping: () => boolean;
}

/** Call `keys.refresh` once at the start; after that requests keep the keys fresh. */
export interface Service {
  readonly pipeline: Pipeline;
  readonly keys: KeySet;
  /** Stop it last: it sums up what was refused. */
  readonly observer: Observer;
}

/** Throws an `Error` when rows overlap. */
export function assemble(table: Table, settings: Settings, surroundings: Surroundings): Service {
  const { clock, log, fetchKeys, isStopping } = surroundings;
  const keys = new KeySet(fetchKeys, clock, log);
  const observer = createObserver({ log, clock });
  const pipeline = createPipeline({
    table: { rows: [...probes(keys, isStopping), ...table.rows], rules: table.rules ?? [] },
    verifyToken: createTokenVerifier(settings, keys, clock, settings.tokenCacheEntries),
    checkSender: assembleSenderCheck(settings, log),
    challenges: settings,
    cors: createCors(settings),
    observe: observer.observe,
    clock,
    isStopping,
  });
  return { pipeline, keys, observer };
}

function assembleSenderCheck(settings: Settings, log: Log) {
  const { dpopNonceSecret, dpopIatOffsetSeconds, dpopIatLeewaySeconds } = settings;
  const nonces = dpopNonceSecret === undefined ? undefined : createNonces(dpopNonceSecret);
  const windowSeconds = dpopIatOffsetSeconds + dpopIatLeewaySeconds;
  const replayStore = createReplayStore(windowSeconds, undefined, () =>
    log('memory of used proofs full', {}),
  );
  return createSenderCheck(settings, createProofVerifier(settings, nonces), replayStore);
}

/** `/healthz`: the process lives. `/readyz`: it has keys to judge tokens with, and is not about to end. */
function probes(keys: KeySet, isStopping: () => boolean): readonly Row[] {
  function readiness(): object {
    if (isStopping()) throw unavailable('shutting-down', 1);
    if (!keys.isReady()) throw unavailable('keys-unavailable', 1);

    return { status: 'ready' };
  }

  return [get('/healthz', open, () => ({ status: 'ok' })), get('/readyz', open, readiness)];
}
