// The listener: node:http with its limits, the answers that Node would give itself, and an orderly end (contract §3, §10).
// Promises: whoever connects is refused or timed out by a stated limit; at the end every request under way is answered.
import { createServer, IncomingMessage, STATUS_CODES, type Server, type ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import type { Pipeline } from './pipeline.ts';
import { CLOSE, isGone, UNREAD_MILLIS, type Reply } from '../reply/reply.ts';
import { refuseHttp, refuseRequest, type Refused } from '../base/refusal.ts';

const OPTIONS = {
  // Keep-alive lasts longer than the idle time of load balancers, so that they never send into a closing connection.
  headersTimeout: 10_000,
  requestTimeout: 15_000,
  keepAliveTimeout: 72_000,
  connectionsCheckingInterval: 1_000,
  // A missing Host is answered by the app, in its own shape.
  maxHeaderSize: 16 * 1024,
  requireHostHeader: false,
  optimizeEmptyRequests: true,
};
/** What `optimizeEmptyRequests` does from Node 24 on: after a request without content there is no stream to be ended, for nobody. */
class Request extends IncomingMessage {
  override resume(): this {
    return this.complete && this.listenerCount('data') === 0 ? this : super.resume();
  }
}
const [LINGER_MILLIS, IDLE_GRACE_MILLIS, STOP_MILLIS] = [1_000, 1_000, 10_000];
/** `stop` takes no new connections and resolves when the last is gone, at the latest after ten seconds. */
export type Listener = Readonly<{ server: Server; stop: () => Promise<'drained' | 'deadline'> }>;
/** A server for the app that does not listen yet; `now` gives milliseconds since the epoch; `batchSize` is in requests. */
export function createListener(pipeline: Pipeline, now: () => number, batchSize = 64): Listener {
  const server = createServer({ ...OPTIONS, IncomingMessage: Request });
  // Node would drop fields after the 2,000th unseen, a second Authorization among them.
  server.maxHeadersCount = 0;
  /** Every open connection, with its latest response. */
  const sockets = new Map<Socket, ServerResponse | undefined>();
  const broken = new WeakSet<Socket>();
  const enqueue = inBatches(pipeline, batchSize);
  const answer = (refused?: Refused) => (request: IncomingMessage, response: ServerResponse) => {
    sockets.set(request.socket, response);
    enqueue(request, response, refused);
  };
  /** An answer on a bare socket comes after those that are under way on it (RFC 9112 §9.3.2), if the client reads them. */
  const refuse = (socket: Socket, refused: Refused) => {
    const before = sockets.get(socket);
    const end = () => endWith(socket, rawReply(pipeline.refuse(refused), now()));
    if (before === undefined || before.writableFinished) return end();
    before.once('finish', end);
    socket.setTimeout(UNREAD_MILLIS, () => socket.destroy());
  };
  server.on(
    'connection',
    (socket: Socket) =>
      void sockets.set(
        socket.once('close', () => sockets.delete(socket)),
        undefined,
      ),
  );
  // The body is never wanted, so the client is not told to go on (RFC 9110 §10.1.1).
  server.on('request', answer()).on('checkContinue', answer());
  server.on('checkExpectation', answer(refuseHttp('expectation_failed')));
  // Node leaves this socket to us, its errors too.
  server.on('connect', ({ socket }) =>
    refuse(
      socket.on('error', () => socket.destroy()),
      refuseRequest('target-refused'),
    ),
  );
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    // Every further piece of what is broken comes here again.
    if (broken.has(socket)) return;
    broken.add(socket);
    const before = sockets.get(socket);
    if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
    // Broken bytes in a body that is being drained: its request has been answered.
    else if (before?.headersSent && !before.writableEnded) before.end();
    else refuse(socket, refusalFor(error));
  });
  return { server, stop: () => stop(server, sockets) };
}
/** Works off together the requests of one turn of the event loop, then writes their answers together: under load both cost less. A few are
 * answered one by one, so that the first client goes on meanwhile. Never more than a batch waits: a client's answers hold up its requests. */
function inBatches(
  { prepare }: Pipeline,
  batchSize: number,
): (...asked: Parameters<Pipeline['prepare']>) => void {
  const queue: Parameters<Pipeline['prepare']>[] = [];
  const drain = () => {
    const batch = queue.splice(0);
    const workOff = (asked: Parameters<Pipeline['prepare']>) =>
      isGone(asked[0], asked[1]) ? undefined : prepare(...asked);
    if (batch.length < 8) for (const asked of batch) workOff(asked)?.();
    else for (const write of batch.map(workOff)) write?.();
  };
  return (...entry) => {
    if (queue.push(entry) === batchSize) drain();
    else if (queue.length === 1) setImmediate(drain);
  };
}
function refusalFor({ code }: NodeJS.ErrnoException): Refused {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return refuseHttp('request_timeout');
  return code === 'HPE_HEADER_OVERFLOW'
    ? refuseHttp('header_fields_too_large')
    : refuseRequest('malformed-http');
}
/** The reply as text, for a connection on which there is no request that could be answered; it closes it. */
function rawReply({ status, fields, text }: Reply, nowMillis: number): string {
  const lines = ['Date', new Date(nowMillis).toUTCString(), ...fields, ...CLOSE]
    .map((field, index) => field + (index % 2 === 0 ? ': ' : '\r\n'))
    .join('');
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines}\r\n${text}`;
}
/** Answers on a bare socket, and gives the client a moment to read before a reset can overtake the answer. */
function endWith(socket: Socket, text: string): void {
  if (socket.writableEnded) return;
  socket.end(text);
  const timer = setTimeout(() => socket.destroy(), LINGER_MILLIS);
  socket.once('close', () => clearTimeout(timer)).resume();
}
/** RFC 9112 §9.6: what is under way is answered, then connections close. */
function stop(server: Server, sockets: ReadonlyMap<Socket, unknown>): Promise<'drained' | 'deadline'> {
  return new Promise((resolve) => {
    const grace = setTimeout(() => {
      server.closeIdleConnections();
      // Node counts a connection that has not sent anything yet as busy.
      for (const socket of sockets.keys()) if (socket.bytesRead === 0) socket.destroy();
    }, IDLE_GRACE_MILLIS);
    const deadline = setTimeout(() => {
      resolve('deadline');
      server.closeAllConnections();
    }, STOP_MILLIS);
    // The close of node:http would at once reset connections whose next request is already in the socket's buffer.
    NetServer.prototype.close.call(server, () => {
      clearTimeout(grace);
      clearTimeout(deadline);
      resolve('drained');
    });
  });
}
