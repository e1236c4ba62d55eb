// One reply: status, JSON body, the header fields that every answer carries, written at once. Trusts its caller for header values.
// Promises: JSON in UTF-8 with Content-Length; never cached, never sniffed; a body that was sent is drained, not read.
import type { IncomingMessage, ServerResponse } from 'node:http';

/** `headers` lists names and values in turn; without a body (RFC 9110 §15.3.5) there is no content; `closes` ends the connection. */
export type Reply = Readonly<{ status: number; headers: readonly string[]; body: object | undefined; closes?: boolean }>;

export const CLOSE = ['Connection', 'close'];
/** RFC 9111 §5.2.2.5: nothing that depends on a token may be stored. */
const ALWAYS = ['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff'];
const JSON_ALWAYS = ['Content-Type', 'application/json; charset=utf-8', ...ALWAYS];
/** How long, and how much of, a request body is drained before the connection ends. */
const [DRAIN_MILLIS, DRAIN_BYTES] = [1_000, 1024 * 1024];

export const reply = (status: number, body: object, headers: readonly string[] = []): Reply => ({ status, headers, body });
/** The header fields of a JSON text, names and values in turn. */
export const contentHeaders = (text: string) => [...JSON_ALWAYS, 'Content-Length', String(Buffer.byteLength(text))];
/** Gives what writes the reply, all ready. `more` are header fields that depend on the request; `isLast` closes the connection. */
export function prepare(request: IncomingMessage, response: ServerResponse, answer: Reply, more: readonly string[], isLast: boolean): () => void {
  const { status, headers, body, closes } = answer;
  const { upgrade, 'transfer-encoding': coding, 'content-length': length = '0' } = request.headers;
  // RFC 9112 §6.3: what announces a body.
  const drains = coding !== undefined || length !== '0';
  // Node reads nothing more from a connection after a request that offers an upgrade (RFC 9110 §7.8).
  const isEnd = isLast || closes || drains || upgrade !== undefined;
  const text = body === undefined ? '' : JSON.stringify(body);
  const fields = [...(body === undefined ? ALWAYS : contentHeaders(text)), ...headers, ...more, ...(isEnd ? CLOSE : [])];
  return () => {
    if (response.destroyed) return;
    response.writeHead(status, fields);
    if (drains) endAfterDrain(request, response, text);
    else response.end(text);
  };
}
/** Writes the reply at once. */
export const send = (...all: Parameters<typeof prepare>): void => prepare(...all)();

/** Ending while the client still sends would reset the connection, and the reset could overtake the answer (RFC 9112 §9.6).
 * So the answer is sent whole, and the connection ends a little later. */
function endAfterDrain(request: IncomingMessage, response: ServerResponse, text: string): void {
  response.flushHeaders();
  if (text !== '') response.write(text);
  const finish = () => { clearTimeout(deadline); response.end(); };
  const deadline = setTimeout(finish, DRAIN_MILLIS);
  let bytes = 0;
  request.on('data', (chunk: Buffer) => { if ((bytes += chunk.length) > DRAIN_BYTES) request.pause(); });
  request.once('end', finish).once('close', finish);
}
