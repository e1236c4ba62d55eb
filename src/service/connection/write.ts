// Writes a reply as the response. Trusts its fields, checked when it was made. Promises: one write, or none
// when the client has gone; an unread body ends the connection.
import type { ServerResponse } from 'node:http';
import type { Reply } from '../../gate/replies/reply.ts';
import type { Exchange } from '../request/exchange.ts';

/** RFC 9112 §9.6 */
export const CLOSE = ['Connection', 'close'];

/** `more` are fields of this request alone. `closes` ends the connection. */
export function writeReply(
  exchange: Exchange,
  { status, fields, content, closes }: Reply,
  more: readonly string[],
) {
  if (exchange.isGone) return;

  const { response } = exchange;
  const isLast = closes || endsConnection(exchange);
  // What is not read at once would pile up.
  if (isLast) exchange.connection.endReading();
  // Without `shouldKeepAlive` Node adds `close`.
  const last = isLast && response.shouldKeepAlive ? CLOSE : [];
  response.writeHead(status, [...fields, ...more, ...last]);
  // Corked: Node 20 and 22 send `end(text)` in two pieces.
  if (content !== '') {
    response.cork();
    response.write(content);
    response.uncork();
  }
  response.end();
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

/** Ends the connection when this response's turn comes: Node 24 never destroys a queued response. */
export function hangUp(response: ServerResponse) {
  if (response.socket !== null) response.destroy();
  else response.once('socket', (socket) => socket.destroySoon());
}
