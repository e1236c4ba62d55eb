// Writing a reply on the response of its request. Trusts the reply, whose fields were checked when it was
// made. Promises: it is written once, in one piece, and not at all when nobody can be answered; a body that
// nobody has read ends the connection. Does not end it: Node does, in the way of service/http/connection.ts.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Reply } from '../../gate/reply.ts';

/** The sockets of which an answer is decided that ends the connection. */
const endingSockets = new WeakSet<Socket>();

/** Whether an answer is decided that ends the connection: nothing behind it is carried out, or read. */
export const isEnding = (socket: Socket) => endingSockets.has(socket);

/**
 * Reads nothing more until `resumeReading`: Node would go on whenever it has room for a body or an answer.
 */
export function pauseReading(socket: Socket): void {
  socket.pause();
  socket.resume = () => socket;
  socket.off('resume', pauseAgain).on('resume', pauseAgain);
}

/**
 * A `resume` that was asked for before is said later, and then Node reads, although the stream is paused and
 * could not be paused again: what comes while its parser is paused too is an error.
 */
function pauseAgain(this: Socket): void {
  this.emit('pause');
}

/** Reads again, unless Node has no room. */
export function resumeReading(socket: Socket): void {
  Reflect.deleteProperty(socket, 'resume');
  socket.off('resume', pauseAgain);
  socket.resume();
}

/** The field of an answer that ends its connection (RFC 9112 §9.6). */
export const CLOSE = ['Connection', 'close'];

/** Writes the reply; `more` are fields that depend on the request; `isLast` closes the connection. */
export function writeReply(
  request: IncomingMessage,
  response: ServerResponse,
  { status, fields, content, closes }: Reply,
  more: readonly string[],
  isLast: boolean,
): void {
  if (isGone(request, response)) return;

  const isEnd = decideEnd(request, isLast || closes || response.shouldKeepAlive === false);
  // Node says so itself of an answer that keeps nothing alive.
  const last = isEnd && response.shouldKeepAlive ? CLOSE : [];
  response.writeHead(status, [...fields, ...more, ...last]);
  // In one piece: Node 20 and 22 would send what `end(text)` is given as two.
  response.cork();
  response.write(content);
  response.uncork();
  response.end();
}

/**
 * Decides whether the connection ends with the answer. If so nothing more is read from it, even while
 * earlier answers are pending: what follows would be kept without a bound. It ends anyhow where bytes that
 * are no request follow, or none are read any more.
 */
export function decideEnd(request: IncomingMessage, isEnd?: boolean) {
  const { upgrade, 'transfer-encoding': coding, 'content-length': length = '0' } = request.headers;
  // RFC 9112 §6.3: what announces a body.
  const hasBody = coding !== undefined || length !== '0';
  // It does not flow, and has not been stopped either, before somebody begins to read.
  const isUnread = hasBody && !(request.complete && request.readableFlowing !== null);
  // Node reads nothing more after a request that offers an upgrade, which is ignored (RFC 9110 §7.8).
  const ends = isEnd || isUnread || upgrade !== undefined;
  if (ends) {
    endingSockets.add(request.socket);
    pauseReading(request.socket);
  }
  return ends;
}

/**
 * True when nobody can be answered. What is written to a destroyed socket Node takes for finished, perhaps
 * before its turn, which ends the process.
 */
export function isGone(request: IncomingMessage, response: ServerResponse): boolean {
  return response.destroyed || !request.socket.writable;
}

/**
 * Ends the connection without an answer, in the turn of this one: from Node 24 on `destroy` would forget
 * one that has to wait.
 */
export function hangUp(response: ServerResponse): void {
  if (response.socket !== null) response.destroy();
  else response.once('socket', (socket) => socket.destroySoon());
}
