// Writes a reply as the response. Trusts its fields, checked when it was made. Promises: one write, or none
// when the client has gone; an unread body ends the connection.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Reply } from '../../gate/replies/reply.ts';

const endingSockets = new WeakSet<Socket>();

/** Once the last response is known, nothing after it is read or run. */
export const isEnding = (socket: Socket) => endingSockets.has(socket);

/** Until `resumeReading`: Node alone would resume too early. */
export function pauseReading(socket: Socket) {
  socket.pause();
  socket.resume = () => socket;
  socket.off('resume', pauseAgain).on('resume', pauseAgain);
}

/** A `resume` that was pending still fires, but Node's parser must not be fed while paused. */
function pauseAgain(this: Socket) {
  this.emit('pause');
}

export function resumeReading(socket: Socket) {
  Reflect.deleteProperty(socket, 'resume');
  socket.off('resume', pauseAgain);
  socket.resume();
}

/** RFC 9112 §9.6 */
export const CLOSE = ['Connection', 'close'];

/** `more` are fields of this request alone. `closes` ends the connection. */
export function writeReply(
  request: IncomingMessage,
  response: ServerResponse,
  { status, fields, content, closes }: Reply,
  more: readonly string[],
) {
  if (isGone(request, response)) return;

  const isEnd = recordEnd(request, response, closes);
  // Without `shouldKeepAlive` Node adds `close`.
  const last = isEnd && response.shouldKeepAlive ? CLOSE : [];
  response.writeHead(status, [...fields, ...more, ...last]);
  // Corked: Node 20 and 22 send `end(text)` in two pieces.
  if (content !== '') {
    response.cork();
    response.write(content);
    response.uncork();
  }
  response.end();
}

/**
 * Returns whether this response ends the connection. It does after an unread body, whose bytes are not a
 * request. If so, stops reading at once, or bytes would pile up.
 */
export function recordEnd(request: IncomingMessage, response: ServerResponse, closes?: boolean) {
  const { upgrade, 'transfer-encoding': coding, 'content-length': length = '0' } = request.headers;
  // RFC 9112 §6.3: either field announces a body.
  const hasBody = coding !== undefined || length !== '0';
  // `null` until reading begins.
  const isUnread = hasBody && !(request.complete && request.readableFlowing !== null);
  // Node reads nothing after an offer to upgrade, which we ignore (RFC 9110 §7.8).
  const ends = closes || !response.shouldKeepAlive || isUnread || upgrade !== undefined;
  if (ends) {
    endingSockets.add(request.socket);
    pauseReading(request.socket);
  }
  return ends;
}

/** A response to a destroyed socket could finish before its turn, and end the process. */
export function isGone(request: IncomingMessage, response: ServerResponse) {
  return response.destroyed || !request.socket.writable;
}

/** Ends the connection when this response's turn comes: Node 24 never destroys a queued response. */
export function hangUp(response: ServerResponse) {
  if (response.socket !== null) response.destroy();
  else response.once('socket', (socket) => socket.destroySoon());
}
