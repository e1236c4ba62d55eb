/*
 * The listener: node:http with its limits, the answers that Node would give itself, and an orderly end.
 * Trusts Node's parser (never the lenient one). Promises: whoever connects is refused or timed out by a stated limit;
 * at the end every request under way is answered.
 * Does not decide any answer to a well-formed request: app.ts does.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import type { App } from './app.ts';
import { rawReply, send } from './http/reply.ts';
import { deadEnd, refuseRequest, type Refused } from './refusal.ts';

const LIMITS = {
  headersTimeout: 10_000,
  requestTimeout: 15_000,
  // Longer than the idle time of load balancers, so that they never send into a closing connection.
  keepAliveTimeout: 72_000,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 16 * 1024,
  // A missing Host is answered by the app, in its own shape.
  requireHostHeader: false,
};
const LINGER_MILLIS = 1_000;
const IDLE_GRACE_MILLIS = 1_000;
const STOP_MILLIS = 10_000;

export interface Listener {
  readonly server: Server;
  /** Takes no new connections and resolves when the last is gone, at the latest after ten seconds. */
  stop(): Promise<'drained' | 'deadline'>;
}

/** A server for the app that does not listen yet. */
export function createListener(app: App): Listener {
  const server = createServer(LIMITS);
  // Node would drop fields after the 2,000th unseen, a second Authorization among them.
  server.maxHeadersCount = 0;
  const unanswered = new Map<Socket, ServerResponse>();
  const sockets = new Set<Socket>();

  const answer = (request: IncomingMessage, response: ServerResponse) => {
    unanswered.set(request.socket, response);
    response.once('close', () => { if (unanswered.get(request.socket) === response) unanswered.delete(request.socket); });
    app.answer(request, response);
  };
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('request', answer);
  // The body is never wanted, so the client is not told to go on (RFC 9110 §10.1.1).
  server.on('checkContinue', answer);
  server.on('checkExpectation', (request, response) => send(request, response, app.refuse(request, deadEnd('expectation_failed')), [], true));
  server.on('connect', (request, socket) => endWith(socket as Socket, rawReply(app.refuse(request, refuseRequest('target-refused')))));
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    const before = unanswered.get(socket);
    const refusal = () => endWith(socket, rawReply(app.refuse(undefined, refusalFor(error))));
    if (!socket.writable || error.code === 'ECONNRESET') socket.destroy();
    else if (before === undefined || before.writableEnded) refusal();
    // Broken bytes in a body that is being drained: its request has been answered.
    else if (before.headersSent) before.end();
    else before.once('finish', refusal);
  });
  return { server, stop: () => stop(server, sockets) };
}

/** Which limit or rule an error of Node's parser stands for. */
function refusalFor({ code }: NodeJS.ErrnoException): Refused {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return deadEnd('request_timeout');
  return code === 'HPE_HEADER_OVERFLOW' ? deadEnd('header_fields_too_large') : refuseRequest('malformed-http');
}

/** Answers on a bare socket, and gives the client a moment to read before a reset can overtake the answer. */
function endWith(socket: Socket, text: string): void {
  if (socket.writableEnded) return;
  socket.end(text);
  const timer = setTimeout(() => socket.destroy(), LINGER_MILLIS);
  socket.once('close', () => clearTimeout(timer)).resume();
}

/** RFC 9112 §9.6: what is under way is answered, then connections close. */
function stop(server: Server, sockets: ReadonlySet<Socket>): Promise<'drained' | 'deadline'> {
  return new Promise((resolve) => {
    const timers = [
      setTimeout(() => {
        server.closeIdleConnections();
        // Node counts a connection that has not sent anything yet as busy.
        for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
      }, IDLE_GRACE_MILLIS),
      setTimeout(() => {
        resolve('deadline');
        server.closeAllConnections();
      }, STOP_MILLIS),
    ];
    // The close of node:http would at once reset connections whose next request is already in the socket's buffer.
    NetServer.prototype.close.call(server, () => {
      timers.forEach(clearTimeout);
      resolve('drained');
    });
  });
}
