/** The response of an endpoint, before a fault changes how it is sent. */
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';

/** A response. Sends the header fields unchanged, and adds `Content-Length`. */
export interface Reply {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: string | Buffer;
}

/** A JSON response (RFC 8259). */
export function json(status: number, value: unknown, headers: OutgoingHttpHeaders = {}): Reply {
  return { status, headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify(value) };
}

/**
 * Sends the whole response with its `Content-Length`; a 204 or 304 has neither body nor length (RFC 9110
 * §6.4.1, §8.6).
 */
export function send(response: ServerResponse, { status, headers, body }: Reply): void {
  if (status === 204 || status === 304) response.writeHead(status, headers).end();
  else response.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(body) }).end(body);
}
