// Writes a reply as the response, or the head of a stream. Trusts its fields, checked when it was made.
// Promises: one write, or none when the client has gone; an unread body ends the connection.
import type { ServerResponse } from 'node:http';
import type { Reply } from '../../gate/replies/reply.ts';
import type { AfterLast, Exchange } from '../request/exchange.ts';

/** RFC 9112 §9.6 */
export const CLOSE = ['Connection', 'close'];

/** `more` are fields of this request alone. `closes` ends the connection. */
export function writeReply(exchange: Exchange, reply: Reply, more: readonly string[]) {
  if (exchange.isGone) return;

  const { response } = exchange;
  const { content } = reply;
  // What is not read at once would pile up.
  writeHead(exchange, reply, more, 'pause');
  // Corked: Node 20 and 22 send `end(text)` in two pieces.
  if (content !== '') {
    response.cork();
    response.write(content);
    response.uncork();
  }
  response.end();
}

/** The connection is read on: otherwise it would not show that the client leaves. */
export function writeStreamHead(exchange: Exchange, reply: Reply, more: readonly string[]) {
  const { complete, readableFlowing } = exchange.request;
  const isBeingRead = !complete && readableFlowing !== null;
  writeHead(exchange, reply, more, isBeingRead ? 'read' : 'drop');
}

function writeHead(
  exchange: Exchange,
  { status, fields, closes }: Reply,
  more: readonly string[],
  afterLast: AfterLast,
) {
  const { response } = exchange;
  const isLast = closes || endsConnection(exchange);
  if (isLast) exchange.connection.endReading(afterLast);
  // Without `shouldKeepAlive` Node adds `close`.
  const last = isLast && response.shouldKeepAlive ? CLOSE : [];
  response.writeHead(status, [...fields, ...more, ...last]);
}

/** An unread body does: its bytes are not a request. */
function endsConnection({ request, response }: Exchange) {
  const { upgrade, 'transfer-encoding': coding, 'content-length': length = '0' } = request.headers;
  // RFC 9112 §6.3: either field announces a body.
  const hasBody = coding !== undefined || length !== '0';
  // `null` until reading begins.
  const isUnread = hasBody && !(request.complete && request.readableFlowing !== null);
  // Node reads nothing after an offer to upgrade, which we ignore (RFC 9110 §7.8).
  return !response.shouldKeepAlive || isUnread || upgrade !== undefined;
}

/**
 * Ends the connection so that no client takes a part for the whole. To HTTP/1.0, the end of the connection is
 * that of the body (RFC 9112 §6.3), unless it is a reset.
 */
export function cutOff({ request, response }: Exchange) {
  if (request.httpVersion === '1.0') request.socket.resetAndDestroy();
  response.destroy();
}

/** Ends the connection when this response's turn comes: Node 24 never destroys a queued response. */
export function hangUp(response: ServerResponse) {
  if (response.socket !== null) response.destroy();
  else response.once('socket', (socket) => socket.destroySoon());
}
