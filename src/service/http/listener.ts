// The listener: node:http with its limits, the answers that Node would give itself, and an orderly end.
// Trusts the responder for every answer. Promises: whoever connects is refused or timed out by a stated
// limit; at the end every request under way is answered. Does not end single connections: connection.ts
// does.
import { createServer, STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../../verify/base/clock.ts';
import { refuse, type Refused } from '../../verify/base/refusal.ts';
import { pairsOf, type Reply } from '../../gate/reply.ts';
import { CLOSE } from './write.ts';
import { refuseBody } from '../routes/body.ts';
import { createBatches } from './batches.ts';
import { Connection, KEEP_ALIVE_MILLIS, REQUEST_MILLIS } from './connection.ts';
import { MAX_FIELDS } from './pipeline.ts';
import { RequestStream } from './request-stream.ts';
import type { Responder } from './responder.ts';

const OPTIONS = {
  headersTimeout: 10_000,
  requestTimeout: REQUEST_MILLIS,
  keepAliveTimeout: KEEP_ALIVE_MILLIS,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 16 * 1024,
  // A missing Host is answered by the responder, in its own shape.
  requireHostHeader: false,
  optimizeEmptyRequests: true,
  // Said aloud, so that NODE_OPTIONS cannot turn it on.
  insecureHTTPParser: false,
};

const SWEEP_MILLIS = 1_000;
const STOP_MILLIS = 10_000;

/** For how many turns no new connection must come before the listener closes, and how long that may take. */
const QUIET_TURNS = 5;
const QUIET_MILLIS = 250;

/** Gives the server, which does not listen yet, and what stops it. */
export function createListener(responder: Responder, clock: Clock) {
  const server = createServer({ ...OPTIONS, IncomingMessage: RequestStream });
  Object.assign(server, {
    // Node keeps no more while a header arrives, and one too many is seen to be one too many.
    maxHeadersCount: MAX_FIELDS + 1,
    // A client that has closed its side is answered (RFC 9112 §9.6).
    httpAllowHalfOpen: true,
    // Node would call it at the end, and reset one whose next request is already in the socket's buffer.
    closeIdleConnections: () => {},
  });
  const connections = new Map<Socket, Connection>();
  const enqueue = createBatches(responder);

  function receive(request: IncomingMessage, response: ServerResponse): void {
    connections.get(request.socket)?.begin(response);
    enqueue(request, response);
  }

  function turnAway(socket: Socket, refused: Refused, request?: IncomingMessage): void {
    const makeText = () => replyText(responder.turnAway(refused, request), clock.now());
    connections.get(socket)?.endWith(makeText);
  }

  function refuseArriving(socket: Socket, refused: Refused): void {
    const arriving = connections.get(socket)?.arriving;
    if (arriving === undefined) turnAway(socket, refused);
    else refuseBody(arriving, refused);
  }

  server.on('connection', (socket: Socket) => {
    const connection = new Connection(socket);
    connections.set(socket, connection);
    socket.once('close', () => {
      connections.delete(socket);
      connection.leave();
    });
  });

  // With `checkContinue` Node leaves it to us to tell the client to go on (RFC 9110 §10.1.1).
  server.on('request', receive).on('checkContinue', receive).on('checkExpectation', receive);

  server.on('connect', (request) => {
    const { socket } = request;
    // Node leaves this socket to us, its errors too.
    socket.on('error', () => socket.destroy());
    turnAway(socket, refuse('target-refused'), request);
  });

  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    const isLate = error.code === 'ERR_HTTP_REQUEST_TIMEOUT';
    // It is Node that does not read, since answers or a body lie unread: the sweep bounds that.
    if (!isLate || !socket.isPaused()) refuseArriving(socket, refusalFor(error));
  });

  let isStopping = false;
  let cancelSweep = () => {};

  function sweep(): void {
    const nowMillis = clock.monotonic();
    for (const [socket, connection] of connections) {
      // Those that Node takes for idle may have the end of an answer still to be written.
      const isOver = isStopping && connection.isIdle;
      if (isOver || connection.isOverdue(nowMillis)) socket.destroy();
      else if (connection.isLate(nowMillis)) refuseArriving(socket, LATE);
    }
    cancelSweep = clock.after(SWEEP_MILLIS, sweep);
  }

  server.on('listening', sweep).on('close', () => cancelSweep());

  /** The system has accepted connections that Node has yet to take: closed at once it would reset them. */
  function whenQuiet(close: () => void): void {
    let turnsLeft = QUIET_TURNS;
    let isLate = false;

    const beginAnew = () => {
      turnsLeft = QUIET_TURNS;
    };

    const cancel = clock.after(QUIET_MILLIS, () => {
      isLate = true;
    });

    function turn(): void {
      turnsLeft -= 1;
      if (turnsLeft > 0 && !isLate) {
        setImmediate(turn);
        return;
      }

      cancel();
      server.off('connection', beginAnew);
      close();
    }

    server.on('connection', beginAnew);
    setImmediate(turn);
  }

  /**
   * Takes no new connections, and resolves when the last is gone, at the latest after ten seconds. RFC 9112
   * §9.6: what is under way is answered, then connections close. Calls `onClosing` when no more are taken:
   * told to close before that, clients would only come again.
   */
  const stop = (onClosing = () => {}) =>
    new Promise<'drained' | 'deadline'>((resolve) => {
      let outcome: 'drained' | 'deadline' = 'drained';
      isStopping = true;
      for (const connection of connections.values()) connection.finishUp();
      // Closed at once, one whose next request is already in the socket's buffer would be reset.
      cancelSweep();
      cancelSweep = clock.after(SWEEP_MILLIS, sweep);

      const cancelDeadline = clock.after(STOP_MILLIS, () => {
        outcome = 'deadline';
        for (const socket of connections.keys()) socket.destroy();
      });

      function finish(): void {
        cancelDeadline();
        // Sockets say `close` after these, and handlers are told to give up then.
        setImmediate(() => setImmediate(resolve, outcome));
      }

      whenQuiet(() => {
        server.close(finish);
        onClosing();
      });
    });

  return { server, stop };
}

const LATE = refuse('request_timeout');

function refusalFor({ code }: NodeJS.ErrnoException): Refused {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return LATE;
  if (code === 'HPE_HEADER_OVERFLOW') return refuse('header_fields_too_large');
  return refuse('malformed-http');
}

/** The reply as text, for a connection on which there is no request that could be answered. */
function replyText({ status, fields, content }: Reply, nowMillis: number): string {
  const first = `HTTP/1.1 ${status} ${STATUS_CODES[status]}`;
  // RFC 9110 §6.6.1
  const pairs = pairsOf(['Date', new Date(nowMillis).toUTCString(), ...fields, ...CLOSE]);
  const lines = pairs.map((pair) => pair.join(': '));
  return [first, ...lines, '', content].join('\r\n');
}
