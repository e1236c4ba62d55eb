/* A TLS server on loopback with the certificate that the test authority signed. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';

const certificate = (name: string) => readFileSync(new URL(`../../idp/tls/${name}.pem`, import.meta.url));

export interface Listening {
  readonly domain: string;
  stop(): void;
}

/** Listens on a free port; `handlerFor` is told the domain, which a provider needs for its issuer. */
export async function listen(handlerFor: (domain: string) => RequestListener): Promise<Listening> {
  const server = createServer({ cert: certificate('provider'), key: certificate('provider-key') });
  server.listen(0, 'localhost');
  await once(server, 'listening');

  const domain = `localhost:${(server.address() as AddressInfo).port}`;
  server.on('request', handlerFor(domain));
  return {
    domain,
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
