/* Runs the pipeline with a table of its own, for tests of routes that no profile has. */
import type { Server } from 'node:http';
import { createFront, type Front } from '../../src/gate/front.ts';
import { createResponder, type Responder } from '../../src/service/http/responder.ts';
import { createListener } from '../../src/service/http/listener.ts';
import { createLog } from '../../src/verify/base/events.ts';
import type { PrefixRule, Route } from '../../src/service/routes/route.ts';
import type { SenderCheck } from '../../src/verify/caller.ts';
import type { TokenVerifier } from '../../src/verify/token/verify.ts';
import { clock, senderWith, settingsWith, verifierWith } from './caller.ts';
import { serve, type Served } from './serve.ts';
import type { Environment } from './service.ts';

export interface Table {
  readonly routes: readonly Route[];
  readonly policy?: readonly PrefixRule[];
  readonly environment?: Environment;
  readonly verify?: TokenVerifier;
  /** What becomes of the sender that the settings ask for. */
  readonly sender?: (usual: SenderCheck) => SenderCheck;
  /** Sees the server before it listens. */
  readonly prepare?: (server: Server) => void;
}

export interface TableApp {
  readonly responder: Responder;
  readonly observer: Front;
  /** Every log line so far, parsed. */
  readonly logs: readonly Record<string, any>[];
}

/** The pipeline over these routes; it accepts the tokens of `tokenWith`. */
export function createTable({
  routes,
  policy = [],
  environment = {},
  verify = verifierWith(environment),
  sender = (usual) => usual,
}: Table): TableApp {
  const settings = settingsWith(environment);
  const logs: Record<string, any>[] = [];
  const log = createLog('debug', (line) => logs.push(JSON.parse(line)), clock.now);
  const front = createFront(settings, { clock, log }, verify, sender(senderWith(environment)));
  const responder = createResponder({ routes, rules: policy }, front);
  return { responder, observer: front, logs };
}

export interface TableService extends TableApp, Served {
  readonly server: Server;
  /** Stops as the process would. */
  drain(): Promise<'drained' | 'deadline'>;
}

/** The same behind a listener on a free port. */
export async function startTable(table: Table): Promise<TableService> {
  const { responder, observer, logs } = createTable(table);
  const { server, stop } = createListener(responder, clock);
  table.prepare?.(server);
  return { responder, observer, logs, server, drain: stop, ...(await serve(server)) };
}
