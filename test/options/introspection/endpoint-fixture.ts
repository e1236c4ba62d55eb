/* An introspection endpoint on loopback, over TLS, that records what it is asked. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';

const tls = (name: string) => fileURLToPath(new URL(`../../idp/tls/${name}.pem`, import.meta.url));

export interface Question {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly form: URLSearchParams;
  /** Counts connections from 1. */
  readonly connection: number;
}

export type Say = (question: Question, response: ServerResponse, request: IncomingMessage) => void;

export interface FakeEndpoint {
  readonly domain: string;
  readonly issuer: string;
  readonly uri: string;
  readonly questions: readonly Question[];
  readonly connections: number;
  readonly sockets: ReadonlySet<Socket>;
  /** What it says from now on to a `POST`. */
  say: Say;
  /** The discovery document. */
  document: object | undefined;
  /** The status of the discovery document. Default: 200, or 404 if there is none. */
  documentStatus: number | undefined;
  /** The header fields of each fetch of the document. */
  readonly documentHeaders: readonly IncomingHttpHeaders[];
  /** How often that was fetched. */
  readonly fetches: number;
}

export const json =
  (body: unknown, status = 200): Say =>
  (_, response) => {
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
  };

/** It closes with the test. Says that every token is inactive. */
export async function startEndpoint(
  context: Pick<TestContext, 'after'>,
  certificate = 'provider',
): Promise<FakeEndpoint> {
  const questions: Question[] = [];
  const sockets = new Set<Socket>();
  const numbers = new WeakMap<object, number>();
  let connections = 0;
  const documentHeaders: IncomingHttpHeaders[] = [];
  const credentials = { cert: readFileSync(tls(certificate)), key: readFileSync(tls(`${certificate}-key`)) };
  const server = createServer(credentials, async (request, response) => {
    const { method = '', url: path = '', headers, socket } = request;
    if (method === 'GET') {
      documentHeaders.push(headers);
      const isThere = endpoint.document !== undefined && path === '/.well-known/openid-configuration';
      const { document, documentStatus = isThere ? 200 : 404 } = endpoint;
      response.writeHead(documentStatus);
      response.end(JSON.stringify(document));
      return;
    }

    let body = '';
    for await (const chunk of request) body += chunk;
    const connection = numbers.get(socket) ?? 0;
    const question = { method, path, headers, form: new URLSearchParams(body), connection };
    questions.push(question);
    endpoint.say(question, response, request);
  });
  server.on('secureConnection', (socket) => {
    connections += 1;
    numbers.set(socket, connections);
  });
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen(0, 'localhost');
  await once(server, 'listening');
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });

  const { port } = server.address() as AddressInfo;
  const domain = `localhost:${port}`;
  const issuer = `https://${domain}/`;
  const uri = `${issuer}introspect`;
  const endpoint: FakeEndpoint = {
    domain,
    issuer,
    uri,
    questions,
    sockets,
    say: json({ active: false }),
    document: { issuer, introspection_endpoint: uri },
    documentStatus: undefined,
    documentHeaders,
    get connections() {
      return connections;
    },
    get fetches() {
      return documentHeaders.length;
    },
  };
  return endpoint;
}
