// node:http with limits, our responses in place of Node's, and an orderly end. Promises: every connection has
// limits; on stop, in-flight requests get ten seconds. Does not decide when a response ends its connection:
// service/request/responder.ts and connection.ts do.
import { createServer, STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { nothing, type Clock } from '../../verify/base/clock.ts';
import { refuse, type Refused } from '../../verify/base/refusal.ts';
import type { RawRequest } from '../../verify/request/facts.ts';
import { pairsOf, type Reply } from '../../gate/replies/reply.ts';
import { Exchange, MAX_FIELDS, RequestStream } from '../request/exchange.ts';
import { whenQuiet } from './listen.ts';
import { Connection, KEEP_ALIVE_MILLIS } from './connection.ts';
import { CLOSE, type Responder } from '../request/responder.ts';

const HEADER_MILLIS = 10_000;

const OPTIONS = {
  keepAliveTimeout: KEEP_ALIVE_MILLIS,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 16 * 1024,
  requireHostHeader: false,
  optimizeEmptyRequests: true,
  // Explicit, so that NODE_OPTIONS cannot turn it on.
  insecureHTTPParser: false,
};

const SWEEP_MILLIS = 1_000;
/** If no sweep came for longer, the process was stopped, or its machine slept. */
const MAX_LATE_MILLIS = 5_000;
const STOP_MILLIS = 10_000;

function createNodeServer(requestMillis: number) {
  const server = createServer({
    ...OPTIONS,
    requestTimeout: requestMillis,
    // Node takes no longer one.
    headersTimeout: Math.min(HEADER_MILLIS, requestMillis),
    IncomingMessage: RequestStream,
  });

  return Object.assign(server, {
    // One more, so that the pipeline sees the excess.
    maxHeadersCount: MAX_FIELDS + 1,
    // Clients that closed their side get responses (RFC 9112 §9.6).
    httpAllowHalfOpen: true,
    // `close` would reset connections whose next request is in the socket.
    closeIdleConnections: nothing,
  });
}

export class Listener {
  readonly server;
  readonly #responder;
  readonly #clock;
  readonly #requestMillis;
  readonly #connections = new Map<Socket, Connection>();
  #isStopping = false;
  #cancelSweep = nothing;
  #sweptAtMillis = 0;
  /** When all that had arrived before the last sweep was read. */
  #readAtMillis = 0;
  /** For how long the process has run: while it is stopped, no client is late. */
  #ranMillis = 0;

  constructor(responder: Pick<Responder, keyof Responder>, clock: Clock, requestMillis: number) {
    this.#responder = responder;
    this.#clock = clock;
    this.#requestMillis = requestMillis;
    this.server = createNodeServer(requestMillis);
    this.#handleEvents();
  }

  #handleEvents() {
    const { server } = this;
    server.on('connection', (socket: Socket) => this.#open(socket));
    server.on('listening', () => this.#sweep()).on('close', () => this.#cancelSweep());

    const receive = this.#receive.bind(this);
    // `checkContinue` keeps Node from sending 100 Continue (RFC 9110 §10.1.1).
    server.on('request', receive).on('checkContinue', receive).on('checkExpectation', receive);

    server.on('connect', (request) => {
      const { socket } = request;
      // Node no longer handles its errors.
      socket.on('error', () => socket.destroy());
      this.#endWithRefusal(socket, refuse('target-refused'), request);
    });

    server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
      const isLate = error.code === 'ERR_HTTP_REQUEST_TIMEOUT';
      const sinceReadMillis = this.#clock.monotonic() - this.#readAtMillis;
      if (isLate && sinceReadMillis > MAX_LATE_MILLIS) this.#lookLater(socket);
      // If unread responses or an unread body have paused the socket, the sweep ends it.
      else if (!isLate || !socket.isPaused()) this.#refuseArriving(socket, refusalFor(error));
    });
  }

  /** After a stop of the process, what clients sent meanwhile is not read yet. Node reports it only once. */
  #lookLater(socket: Socket) {
    this.#clock.after(HEADER_MILLIS, () => {
      if (this.#connections.get(socket)?.hasBegun) this.#refuseArriving(socket, LATE);
    });
  }

  #open(socket: Socket) {
    const connection = new Connection(socket, this.#requestMillis);
    // Once read, Node knows it even if the client has gone.
    void socket.remoteAddress;
    this.#connections.set(socket, connection);
    socket.once('close', () => {
      this.#connections.delete(socket);
      connection.leave();
    });
    return connection;
  }

  #receive(request: IncomingMessage, response: ServerResponse) {
    const responder = this.#responder;
    const connection = this.#connections.get(request.socket) ?? this.#open(request.socket);
    const arrivedAtMillis = responder.startTiming();
    const exchange = new Exchange(request as RequestStream, response, connection, arrivedAtMillis);
    connection.begin(exchange);
    if (!connection.isFinishing) return responder.respond(exchange);

    // Once what has arrived is parsed, it is known which response is the last.
    return setImmediate(() => responder.respond(exchange));
  }

  #endWithRefusal(socket: Socket, refused: Refused, request: RawRequest = { rawHeaders: [], socket }) {
    this.#connections.get(socket)?.endWith(() => {
      const reply = this.#responder.refuseConnection(refused, request);
      return replyText(reply, this.#clock.now());
    });
  }

  #refuseArriving(socket: Socket, refused: Refused) {
    const arriving = this.#connections.get(socket)?.arriving;
    if (arriving === undefined) this.#endWithRefusal(socket, refused);
    else arriving.refuseBody(refused);
  }

  #sweep() {
    const nowMillis = this.#clock.monotonic();
    this.#ranMillis += Math.min(nowMillis - this.#sweptAtMillis, MAX_LATE_MILLIS);
    this.#sweptAtMillis = nowMillis;
    for (const [socket, connection] of this.#connections) {
      if (connection.isOverdue(this.#ranMillis)) connection.cutOff();
      else if (connection.isLate(this.#ranMillis)) this.#refuseArriving(socket, LATE);
      // After the turn: this timer may be late, and a request on its way.
      else if (this.#isStopping) setImmediate(closeIdle, socket, connection);
    }
    // After the turn, which reads what has arrived.
    setImmediate(() => {
      this.#readAtMillis = this.#clock.monotonic();
    });
    this.#sweepLater();
  }

  #sweepLater() {
    this.#cancelSweep = this.#clock.after(SWEEP_MILLIS, () => this.#sweep());
  }

  /**
   * RFC 9112 §9.6: in-flight requests get their responses, then connections close. Resolves within ten
   * seconds.
   */
  stop() {
    const responder = this.#responder;
    this.#isStopping = true;
    // A sweep now could cut off a request that is on its way.
    this.#cancelSweep();
    // A load balancer replaces each connection that a response ends, and could reach the port as it closes.
    responder.hold();

    return new Promise<'drained' | 'deadline'>((resolve) => {
      const end = (cut?: readonly Connection[]) => {
        cancelDeadline();
        // Sockets emit `close`, which aborts handlers, after this phase.
        setImmediate(() => setImmediate(() => abandon(resolve, cut)));
      };

      const cancelDeadline = this.#clock.after(STOP_MILLIS, () => end(this.#cutOff()));

      whenQuiet(this.server, this.#clock, () => {
        // Handlers may run on whose clients have reset their connections.
        this.server.close(() => responder.whenIdle(end));
        for (const connection of this.#connections.values()) connection.finishUp();
        responder.release();
        this.#sweepLater();
      });
    });
  }

  #cutOff() {
    const cut = [...this.#connections.values()];
    for (const connection of cut) connection.cutOff();
    return cut;
  }
}

/** Ends the waits for handlers of connections that the deadline has cut off. */
function abandon(resolve: (outcome: 'drained' | 'deadline') => void, cut?: readonly Connection[]) {
  for (const connection of cut ?? []) connection.abandon();
  setImmediate(resolve, cut ? 'deadline' : 'drained');
}

/** Node calls connections idle too early. */
function closeIdle(socket: Socket, connection: Connection) {
  if (connection.isIdle) socket.destroy();
}

const LATE = refuse('request_timeout');

function refusalFor({ code }: NodeJS.ErrnoException) {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return LATE;
  // RFC 6585 §5
  if (code === 'HPE_HEADER_OVERFLOW') return refuse('header_fields_too_large');
  return refuse('malformed-http');
}

function replyText({ status, fields, content }: Reply, nowMillis: number) {
  const first = `HTTP/1.1 ${status} ${STATUS_CODES[status]}`;
  // RFC 9110 §6.6.1
  const pairs = pairsOf(['Date', new Date(nowMillis).toUTCString(), ...fields, ...CLOSE]);
  const lines = pairs.map((pair) => pair.join(': '));
  return [first, ...lines, '', content].join('\r\n');
}
