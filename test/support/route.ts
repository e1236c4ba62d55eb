/* Runs a route alone, for tests of access and handlers without a service. */
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { exchangeOf } from './exchange.ts';
import { HandlerRequest, type HandlerOptions } from '../../src/service/routes/handler-request.ts';
import { isPromise } from '../../src/verify/base/clock.ts';
import { createReplies } from '../../src/gate/replies/refusal-replies.ts';
import { checkAccess } from '../../src/gate/rules/access.ts';
import type { Route } from '../../src/service/routes/route.ts';
import type { Caller } from '../../src/verify/caller.ts';
import { TestClock } from './clock.ts';

const QUESTION = { facts: { method: 'GET', host: undefined, path: '/x', rawHeaders: [] } };
const clock = new TestClock();
const SURROUNDINGS = { clock, log: () => {}, count: undefined };

/** Of a service whose handlers ask for no further access. */
export const HANDLER_OPTIONS: HandlerOptions = {
  trustProxy: false,
  clock,
  replies: createReplies({ dpopMode: 'ALLOWED', dpopAlgorithms: [], errorDetail: false }),

  decide() {
    throw new Error('no handler asks for more here');
  },
};

/**
 * What the route's handler returns for this caller, if its access admits them. Throws what access and handler
 * throw.
 */
export function runRoute(
  route: Route,
  caller: Caller | undefined,
  parameters: Readonly<Record<string, string>> = {},
  nowMillis = 0,
): unknown {
  const request = new IncomingMessage(new Socket());
  const { exchange } = exchangeOf(request, new ServerResponse(request));
  const refused = checkAccess([route.access], caller, true, QUESTION, SURROUNDINGS);
  if (isPromise(refused)) throw new Error('a decision waits');
  if (refused !== undefined) throw refused;

  const admitted = route.access.admit(caller);
  const asked = { ...QUESTION, demands: [route.access], isServed: true };

  return route.handler(new HandlerRequest(exchange, asked, parameters, nowMillis, admitted, HANDLER_OPTIONS));
}
