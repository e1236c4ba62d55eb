/** A plain HTTPS client that trusts only the test authority and opens a connection for every request. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { request as httpsRequest } from 'node:https';

const ca = readFileSync(new URL('tls/authority.pem', import.meta.url));

/** A whole response. */
export interface Response {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

export interface RequestOptions {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Buffer;
}

/** Sends a request without waiting for the response. */
export function begin(
  url: string,
  { method = 'GET', headers = {}, body }: RequestOptions = {},
): ClientRequest {
  const request = httpsRequest(url, { ca, method, headers, agent: false });
  request.end(body);
  return request;
}

/** The head of the response. The body is still unread. */
export async function head(url: string, options?: RequestOptions): Promise<IncomingMessage> {
  const [response] = (await once(begin(url, options), 'response')) as [IncomingMessage];
  return response;
}

/** The whole response. */
export async function fetchWhole(url: string, options?: RequestOptions): Promise<Response> {
  const response = await head(url, options);
  const chunks = (await response.toArray()) as Buffer[];
  return { status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) };
}

/** The response's body as JSON. */
export async function fetchJson(url: string, options?: RequestOptions): Promise<Record<string, unknown>> {
  return JSON.parse(String((await fetchWhole(url, options)).body)) as Record<string, unknown>;
}
