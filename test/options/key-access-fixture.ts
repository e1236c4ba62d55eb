/* A server of keys that only the authority of a cluster vouches for, and the files of its part. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { fileURLToPath } from 'node:url';

const tls = (name: string) => fileURLToPath(new URL(`../idp/tls/${name}.pem`, import.meta.url));

/** Of the cluster alone: no test process trusts it otherwise. */
export const CLUSTER_AUTHORITY = tls('cluster-authority');

/** Which test processes trust by `NODE_EXTRA_CA_CERTS`. */
export const USUAL_AUTHORITY = tls('authority');

export const TOKEN = 'eyJhbGciOiJSUzI1NiJ9.c2VzYW1l.c2VzYW1l_-~+/==';

export interface Asked {
  readonly path: string;
  readonly host: string;
  readonly authorization: string | undefined;
  readonly agent: string | undefined;
  readonly isResumed: boolean;
}

export interface ClusterServer {
  readonly port: number;
  readonly domain: string;
  readonly issuer: string;
  readonly asked: readonly Asked[];
  readonly connections: number;
}

type Documents = (server: ClusterServer, asked: Asked) => Readonly<Record<string, object | undefined>>;

/** Answers with the document of the path, or 404; with 401 if it wants a token and gets another. */
export async function startCluster(
  context: TestContext,
  documents: Documents,
  token?: () => string,
  certificate = 'cluster',
): Promise<ClusterServer> {
  const asked: Asked[] = [];
  const credentials = { cert: readFileSync(tls(certificate)), key: readFileSync(tls(`${certificate}-key`)) };
  const server = createServer(credentials, ({ url = '', headers, socket }, response) => {
    const { authorization, host = '', 'user-agent': agent } = headers;
    const isResumed = (socket as TLSSocket).isSessionReused();
    const one = { path: url, host, authorization, agent, isResumed };
    asked.push(one);
    const document = documents(running, one)[url];
    const isAdmitted = token === undefined || authorization === `Bearer ${token()}`;
    const status = document === undefined ? 404 : 200;
    response.writeHead(isAdmitted ? status : 401).end(JSON.stringify(isAdmitted ? document : {}));
  });
  let connections = 0;
  server.on('connection', () => {
    connections += 1;
  });
  server.listen(0, 'localhost');
  await once(server, 'listening');
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });

  const { port } = server.address() as AddressInfo;
  const domain = `localhost:${port}`;
  const running: ClusterServer = {
    port,
    domain,
    issuer: `https://${domain}/`,
    asked,
    get connections() {
      return connections;
    },
  };
  return running;
}

/** A directory that ends with the test. */
export function directoryFor(context: TestContext): (name: string, content: string | Uint8Array) => string {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-access-'));
  context.after(() => rmSync(directory, { recursive: true }));

  return (name, content) => {
    const path = join(directory, name);
    writeFileSync(path, content);
    return path;
  };
}
