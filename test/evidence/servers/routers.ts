/* Routers with one endpoint for everything, with the lines of their own page: tRPC and GraphQL. */
import type { Server } from './programs.ts';

const BY_FETCH = {
  page: 'test/package/gates/README.md',
  language: 'ts',
  before: `import { getRequestListener } from '@hono/node-server';`,
  dots: 'resolved',
} as const;

export const ROUTERS: Readonly<Record<string, Server>> = {
  tRPC: {
    ...BY_FETCH,
    heading: 'tRPC',
    after: `
const server = createServer(getRequestListener(handle)).listen(port, '127.0.0.1');`,
  },
  GraphQL: {
    ...BY_FETCH,
    heading: 'GraphQL',
    after: `
const ask = (request: Request) => handle(new Request(request.url + '?query={orders}', request));
const server = createServer(getRequestListener(ask)).listen(port, '127.0.0.1');`,
  },
};
