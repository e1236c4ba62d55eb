// Writing a reply on the response of its request. Trusts the reply (its fields were checked when it was made). Promises: it is written
// once, in one piece, and not at all when nobody can be answered; a body that nobody has read ends the connection.
// Does not end the connection: Node does, in the way of service/connection.ts.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Reply } from './reply.ts';

/** Writes a reply that is ready. */
export type Write = () => void;

export const CLOSE = ['Connection', 'close'];

/** Gives what writes the reply; `more` are header fields that depend on the request; `isLast` closes the connection. */
export function prepareReply(
  request: IncomingMessage,
  response: ServerResponse,
  { status, fields, text, closes }: Reply,
  more: readonly string[],
  isLast: boolean,
): Write {
  const isEnd = isLast || closes || leavesBytes(request);
  const all = more.length === 0 && !isEnd ? fields : [...fields, ...more, ...(isEnd ? CLOSE : [])];

  return () => {
    if (isGone(request, response)) return;

    // Node does not change them.
    response.writeHead(status, all as string[]);
    // In one piece: Node 20 and 22 would send what `end(text)` is given as two, at 15 and 4 % of the cost of a request.
    response.cork();
    response.write(text);
    response.uncork();
    response.end();
  };
}

/** Whether bytes are left on the connection that are no request. */
function leavesBytes(request: IncomingMessage): boolean {
  const { upgrade, 'transfer-encoding': coding, 'content-length': length = '0' } = request.headers;
  // RFC 9112 §6.3: what announces a body.
  const hasBody = coding !== undefined || length !== '0';
  const isBodyRead = request.complete && request.readableDidRead;
  // Node reads nothing more from a connection after a request that offers an upgrade (RFC 9110 §7.8).
  return (hasBody && !isBodyRead) || upgrade !== undefined;
}

/**
 * True when nobody can be answered. What is written to a destroyed socket Node takes for finished, perhaps before its turn, which ends
 * the process.
 */
export function isGone(request: IncomingMessage, response: ServerResponse): boolean {
  return response.destroyed || !request.socket.writable;
}
