// One reply: status, JSON body, the header fields that every answer carries, written at once. Trusts its caller for header values.
// Promises: JSON in UTF-8 with Content-Length; never cached, never sniffed; a body that was sent is drained, not read.
import type { IncomingMessage, ServerResponse } from 'node:http';

/** `fields` lists all header names and values in turn, `text` is the content; `closes` ends the connection. Written once, it may be sent often. */
export type Reply = Readonly<{ status: number; fields: readonly string[]; text: string; closes?: boolean }>;
export const CLOSE = ['Connection', 'close'];
/** RFC 9111 §5.2.2.5: nothing that depends on a token may be stored. */
const ALWAYS = ['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff'];
const JSON_ALWAYS = ['Content-Type', 'application/json; charset=utf-8', ...ALWAYS];
/** How long, and how much of, a request body is drained before the connection ends; and how long an answer may lie unread. */
export const [DRAIN_MILLIS, DRAIN_BYTES, UNREAD_MILLIS] = [1_000, 1024 * 1024, 90_000];
/** A JSON reply; `headers` are more fields, names and values in turn. */
export function reply(status: number, body: object, headers: readonly string[] = []): Reply {
  const text = JSON.stringify(body);
  return {
    status,
    fields: [...JSON_ALWAYS, 'Content-Length', String(Buffer.byteLength(text)), ...headers],
    text,
  };
}
/** A reply without content (RFC 9110 §15.3.5). */
export const noContent = (headers: readonly string[]): Reply => ({
  status: 204,
  fields: [...ALWAYS, ...headers],
  text: '',
});
/** Gives what writes the reply, all ready. `more` are header fields that depend on the request; `isLast` closes the connection. */
export function prepare(
  request: IncomingMessage,
  response: ServerResponse,
  answer: Reply,
  more: readonly string[],
  isLast: boolean,
): () => void {
  const { status, text, closes } = answer;
  const { upgrade, 'transfer-encoding': coding, 'content-length': length = '0' } = request.headers;
  // RFC 9112 §6.3: what announces a body.
  const drains = coding !== undefined || length !== '0';
  // Node reads nothing more from a connection after a request that offers an upgrade (RFC 9110 §7.8).
  const isEnd = isLast || closes || drains || upgrade !== undefined;
  const fields =
    more.length === 0 && !isEnd ? answer.fields : [...answer.fields, ...more, ...(isEnd ? CLOSE : [])];
  return () => {
    if (isGone(request, response)) return;
    response.writeHead(status, fields as string[]);
    if (drains) endAfterDrain(request, response, text);
    else endAtOnce(response, text);
    // Node would wait for ever for a client that does not read.
    if (response.writableLength > 0) response.setTimeout(UNREAD_MILLIS);
  };
}
/** True when nobody can be answered. What is written to a destroyed socket Node takes for finished, perhaps before its turn, which ends the process. */
export const isGone = (request: IncomingMessage, response: ServerResponse) =>
  response.destroyed || request.socket.destroyed;
/** Writes the reply at once. */
export const send = (...all: Parameters<typeof prepare>): void => prepare(...all)();
/** Node would send what `end(text)` is given as a list of two pieces, the second one empty; one piece by itself costs less. */
function endAtOnce(response: ServerResponse, text: string): void {
  response.socket?.cork();
  response.write(text);
  response.socket?.uncork();
  response.end();
}
/** Ending while the client still sends would reset the connection, and the reset could overtake the answer (RFC 9112 §9.6).
 * So the answer is sent whole, and the connection ends a little later. */
function endAfterDrain(request: IncomingMessage, response: ServerResponse, text: string): void {
  response.flushHeaders();
  response.write(text);
  const finish = () => {
    clearTimeout(deadline);
    if (!isGone(request, response)) response.end();
  };
  const deadline = setTimeout(finish, DRAIN_MILLIS);
  let bytes = 0;
  request.on('data', (chunk: Buffer) => {
    if ((bytes += chunk.length) > DRAIN_BYTES) request.pause();
  });
  request.once('end', finish).once('close', finish);
}
