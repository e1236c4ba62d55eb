/* Runs the pipeline with other routes, for tests of what no profile has. */
import type { Server } from 'node:http';
import { createAnswers, type Answers } from '../../src/gate/checks.ts';
import { createRouteReaders } from '../../src/service/create-service.ts';
import { Pipeline } from '../../src/service/request/pipeline.ts';
import { Responder } from '../../src/service/request/responder.ts';
import { Listener } from '../../src/service/connection/listener.ts';
import type { PrefixRule, Route } from '../../src/service/routes/route.ts';
import type { Count } from '../../src/verify/base/events.ts';
import { Part } from '../../src/verify/base/option.ts';
import type { SenderCheck } from '../../src/verify/caller.ts';
import type { TokenVerifier } from '../../src/verify/token/verify.ts';
import { clock, senderWith, settingsWith, verifierWith } from './caller.ts';
import { serve, type Served } from './serve.ts';
import { createTestLog, valuesOf, type Environment } from './settings.ts';

export interface RoutesToTest {
  readonly routes: readonly Route[];
  readonly policy?: readonly PrefixRule[];
  readonly environment?: Environment;
  readonly verify?: TokenVerifier;
  /** Replaces the sender check of the settings. */
  readonly sender?: (usual: SenderCheck) => SenderCheck;
  readonly count?: Count;
  readonly onError?: (error: unknown, request: object) => unknown;
  /** Receives the server before it listens. */
  readonly prepare?: (server: Server) => void;
}

export interface BuiltRoutes {
  readonly responder: Responder;
  readonly way: Answers;
  /** Every log line so far, parsed. */
  readonly logs: readonly Record<string, any>[];
}

/** The pipeline over these routes. It accepts the tokens of `tokenWith`. */
export async function createRoutes({
  routes,
  policy = [],
  environment = {},
  count,
  onError,
  verify = verifierWith(environment),
  sender = (usual) => usual,
}: RoutesToTest): Promise<BuiltRoutes> {
  const settings = settingsWith(environment);
  const { log, logs } = createTestLog(clock, 'debug', settings.accessLog);
  const values = { ...(await valuesOf(settings, { log })), onError };
  const serving = { clock, name: 'own table', routes: [], ownRoutes: [], isService: true };
  const way = createAnswers(values, serving, {
    dpopMode: values.dpopMode,
    verifyToken: verify,
    checkSender: sender(senderWith(environment)),
    expect: () => ({}),
    surroundings: { clock, log: Part.contentOf(log).log, count },
  });
  const served = { routes, rules: policy };
  const readers = createRouteReaders(served, [], way.early);
  const pipeline = new Pipeline(readers, { ...way, ...settings, clock });
  return { responder: new Responder(pipeline, way.replies, way.observer, clock), way, logs };
}

export interface RunningRoutes extends BuiltRoutes, Served {
  readonly server: Server;
  /** Stops like the process. */
  drain(): Promise<'drained' | 'deadline'>;
}

/** The same behind a listener on a free port. */
export async function startRoutes(routes: RoutesToTest): Promise<RunningRoutes> {
  const { responder, way, logs } = await createRoutes(routes);
  const listener = new Listener(responder, clock, 15_000);
  const { server } = listener;
  routes.prepare?.(server);
  return { responder, way, logs, server, drain: () => listener.stop(), ...(await serve(server)) };
}
