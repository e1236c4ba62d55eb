/* Runs the pipeline with other routes, for tests of what no profile has. */
import type { Server } from 'node:http';
import { composeRequestParts } from '../../src/process/compose.ts';
import { createRouteReaders, partsOf } from '../../src/process/compose-service.ts';
import { createPipeline } from '../../src/service/request/pipeline.ts';
import { createResponder, type Responder } from '../../src/service/request/responder.ts';
import { createListener } from '../../src/service/connection/listener.ts';
import { createLog } from '../../src/options/log.ts';
import type { PrefixRule, Route } from '../../src/service/routes/route.ts';
import type { SenderCheck } from '../../src/verify/caller.ts';
import type { TokenVerifier } from '../../src/verify/token/verify.ts';
import { clock, senderWith, settingsWith, verifierWith } from './caller.ts';
import { serve, type Served } from './serve.ts';
import type { Environment } from './service.ts';

export interface RoutesToTest {
  readonly routes: readonly Route[];
  readonly policy?: readonly PrefixRule[];
  readonly environment?: Environment;
  readonly verify?: TokenVerifier;
  /** Replaces the sender check of the settings. */
  readonly sender?: (usual: SenderCheck) => SenderCheck;
  /** Receives the server before it listens. */
  readonly prepare?: (server: Server) => void;
}

export interface BuiltRoutes {
  readonly responder: Responder;
  readonly way: ReturnType<typeof composeRequestParts>;
  /** Every log line so far, parsed. */
  readonly logs: readonly Record<string, any>[];
}

/** The pipeline over these routes. It accepts the tokens of `tokenWith`. */
export function createRoutes({
  routes,
  policy = [],
  environment = {},
  verify = verifierWith(environment),
  sender = (usual) => usual,
}: RoutesToTest): BuiltRoutes {
  const settings = settingsWith(environment);
  const logs: Record<string, any>[] = [];
  const log = createLog('debug', (line) => logs.push(JSON.parse(line)), clock.now);
  const surroundings = { clock, log };
  const checks = { verifyToken: verify, checkSender: sender(senderWith(environment)) };
  const way = composeRequestParts(settings, surroundings, partsOf(settings, surroundings), checks);
  const served = { routes, rules: policy };
  const readers = createRouteReaders(served, [], way.early);
  const pipeline = createPipeline(readers, way.decide, { clock, ...settings });
  return { responder: createResponder(pipeline, way.replies, way.observer), way, logs };
}

export interface RunningRoutes extends BuiltRoutes, Served {
  readonly server: Server;
  /** Stops like the process. */
  drain(): Promise<'drained' | 'deadline'>;
}

/** The same behind a listener on a free port. */
export async function startRoutes(routes: RoutesToTest): Promise<RunningRoutes> {
  const { responder, way, logs } = createRoutes(routes);
  const { server, stop } = createListener(responder, clock);
  routes.prepare?.(server);
  return { responder, way, logs, server, drain: stop, ...(await serve(server)) };
}
