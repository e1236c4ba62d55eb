/* The listener with the whole service behind it, without keys, for tests of bytes and connections. */
import { EventEmitter, once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { routesOf } from '../../src/profiles/routes.ts';
import { composeService } from '../../src/service/create-service.ts';
import { Listener } from '../../src/service/connection/listener.ts';
import { Exchange } from '../../src/service/request/exchange.ts';
import { openWire, type Wire } from './client.ts';
import { TestClock } from './clock.ts';
import { createTestLog, kindWith, settingsFrom, valuesOf, type Environment } from './settings.ts';

export const HOST = 'Host: api.test\r\n';
export const ORIGIN = 'https://app.test';
export const PREFLIGHT = `Origin: ${ORIGIN}\r\nAccess-Control-Request-Method: GET\r\n`;

export const get = (fields: string, version = 'HTTP/1.1') => `GET /healthz ${version}\r\n${fields}\r\n`;

export const post = (fields: string, body = '') => `POST /healthz HTTP/1.1\r\n${HOST}${fields}\r\n${body}`;

export const GOOD = get(HOST);
export const LAST = get(`${HOST}Connection: close\r\n`);
/** A request that the listener holds until the test releases it. */
export const HELD = `GET /held HTTP/1.1\r\n${HOST}\r\n`;
export const GARBAGE = 'garbage\r\n\r\n';
export const CONNECT = `CONNECT api.test:443 HTTP/1.1\r\n${HOST}\r\n`;

export interface TestListener extends Pick<Listener, 'server' | 'stop'> {
  readonly clock: TestClock;
  /** Advances the clock by so many seconds, one at a time. */
  pass(seconds: number): void;
  readonly port: number;
  readonly logs: readonly Record<string, unknown>[];
  /** The server's side of every connection so far. */
  readonly sockets: readonly Socket[];
  /** Resolves with the function that answers the next `HELD` request. */
  held(): Promise<() => void>;
  /** From then on it is not ready. */
  beginStopping(): void;
  /** Resolves when no more connections are accepted. */
  closing(): Promise<void>;
  /** Resolves when every connection has closed but those of `open` wires. */
  gone(open?: number): Promise<void>;
}

export interface ListenerPlan {
  readonly environment?: Environment;
  /** Receives the server before it listens. */
  readonly prepare?: (server: Server) => void;
}

/** A held request was already being served when a later response became the last. */
function asOnArrival({ request, response, connection, arrivedAtMillis }: Exchange): Exchange {
  const state = { isEnding: false, isFinishing: false, endReading: () => connection.endReading() };
  return new Exchange(request, response, state, arrivedAtMillis);
}

/** A listener with cross-origin fields for `ORIGIN` by default. It stops with the test. */
export async function openListener(context: TestContext, plan: ListenerPlan = {}): Promise<TestListener> {
  const { environment = { CORS_ALLOWED_ORIGINS: ORIGIN }, prepare } = plan;
  const settings = settingsFrom({
    IDP_DOMAIN: 'idp.test',
    IDP_AUDIENCE: 'api',
    LOG_LEVEL: 'debug',
    ...environment,
  });
  const clock = new TestClock(Date.UTC(2030, 0, 1));
  const { log, logs } = createTestLog(clock, settings.logLevel, settings.accessLog);
  const values = await valuesOf(settings, { log, fetchKeys: () => new Promise<never>(() => {}) });
  const { phase, responder } = composeService(routesOf(settings), values, kindWith(clock));
  const holder = new EventEmitter();
  const listener = new Listener(
    {
      startTiming: () => responder.startTiming(),
      refuseConnection: (refused, request) => responder.refuseConnection(refused, request),
      hold: () => responder.hold(),
      release: () => responder.release(),
      whenIdle: (then) => responder.whenIdle(then),
      respond: (exchange) => {
        if (exchange.request.url !== '/held') return responder.respond(exchange);
        exchange.request.url = '/healthz';
        holder.emit('held', () => responder.respond(asOnArrival(exchange)));
      },
    },
    clock,
    15_000,
  );
  const { server } = listener;
  prepare?.(server);
  const sockets: Socket[] = [];
  server.on('connection', (socket: Socket) => sockets.push(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.after(() => {
    server.close();
    server.closeAllConnections();
    for (const socket of sockets) socket.destroy();
  });
  const left = () => sockets.filter((socket) => !socket.closed);

  const oneCloses = () =>
    Promise.race(left().map((socket) => new Promise((resolve) => socket.once('close', resolve))));

  return {
    server,
    stop: () => listener.stop(),
    clock,
    pass: (seconds) => {
      for (let second = 0; second < seconds; second += 1) clock.advance(1_000);
    },
    logs,
    sockets,
    port: (server.address() as AddressInfo).port,
    held: async () => (await once(holder, 'held'))[0],
    beginStopping: () => {
      phase.isStopping = true;
    },
    closing: () => untilClosing(server),
    gone: async (open = 0) => {
      while (left().length > open) await oneCloses();
    },
  };
}

/** Resolves when a stopping server accepts no more connections. */
export async function untilClosing(server: Server): Promise<void> {
  while (server.listening) await new Promise(setImmediate);
}

/** A connection that has had a response and could have another. */
export async function openUsedWire(port: number): Promise<Wire> {
  const wire = await openWire(port);
  wire.send(GOOD);
  await wire.until((text) => text.endsWith('}'));
  return wire;
}
