/*
 * One reply: status, JSON body, the header fields that every answer carries, written at once.
 * Trusts its caller for header values, which are constants or come from settings.
 * Promises: JSON in UTF-8 with Content-Length; never cached, never sniffed; a body that was sent is drained, not read.
 */
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';

/** `headers` lists names and values in turn; without a body (204) there is no content; `closes` ends the connection. */
export interface Reply {
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: object | undefined;
  readonly closes?: boolean;
}

const NO_HEADERS: readonly string[] = [];
const CLOSE = ['Connection', 'close'];

/** RFC 9111 §5.2.2.5: nothing that depends on a token may be stored. */
const ALWAYS = ['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff'];
const JSON_ALWAYS = ['Content-Type', 'application/json; charset=utf-8', ...ALWAYS];

/** How long, and how much of, a request body is drained before the connection ends. */
const DRAIN_MILLIS = 1_000;
const DRAIN_BYTES = 1024 * 1024;

export const reply = (status: number, body: object, headers = NO_HEADERS): Reply => ({ status, headers, body });

/** True when the request announces a body (RFC 9112 §6.3). */
const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';

/** Writes the reply; `more` are header fields, in turn, that depend on the origin; `isLast` closes the connection. */
export function send(
  request: IncomingMessage, response: ServerResponse, { status, headers, body, closes }: Reply, more: readonly string[], isLast: boolean,
): void {
  const drains = hasBody(request);
  const connection = isLast || drains || closes ? CLOSE : NO_HEADERS;
  const text = body === undefined ? '' : JSON.stringify(body);
  const content = body === undefined ? ALWAYS : [...JSON_ALWAYS, 'Content-Length', String(Buffer.byteLength(text))];
  response.writeHead(status, [...content, ...headers, ...more, ...connection]);
  if (drains) endAfterDrain(request, response, text);
  else response.end(text);
}

/**
 * Ending while the client still sends would reset the connection, and the reset could overtake the answer
 * (RFC 9112 §9.6). So the answer is sent whole, and the connection ends a little later.
 */
function endAfterDrain(request: IncomingMessage, response: ServerResponse, text: string): void {
  response.flushHeaders();
  if (text !== '') response.write(text);
  const finish = () => {
    clearTimeout(deadline);
    response.end();
  };
  const deadline = setTimeout(finish, DRAIN_MILLIS);
  let bytes = 0;
  request.on('data', (chunk: Buffer) => { if ((bytes += chunk.length) > DRAIN_BYTES) finish(); });
  request.once('end', finish).once('close', finish);
}

/** The same reply as text, for a connection on which there is no request that could be answered; it closes it. */
export function rawReply({ status, headers, body }: Reply): string {
  const text = JSON.stringify(body);
  const fields = [...JSON_ALWAYS, 'Content-Length', String(Buffer.byteLength(text)), ...headers, ...CLOSE];
  const lines = fields.map((field, index) => field + (index % 2 === 0 ? ': ' : '\r\n')).join('');
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nDate: ${new Date().toUTCString()}\r\n${lines}\r\n${text}`;
}
