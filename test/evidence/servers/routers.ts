/* What routers and libraries need of the gate, with the lines of the page: an access for each route, tRPC and
   GraphQL. */
import type { Server } from './programs.ts';

const ON_EXPRESS = {
  heading: 'Routes of Express',
  hasPosts: true,
  dots: 'not found',
  after: `
const server = createServer(app).listen(port, '127.0.0.1');`,
} as const;

const EXPRESS_HANDLERS = `
const app = express();
const listOrders: RequestHandler = (_request, response) => {
  response.end('Hello, ' + response.locals.caller.subject);
};
const addOrder = listOrders;`;

const HONO_HANDLERS = `
const app = new Hono();
const listOrders = (context: Context<{ Variables: { caller: Caller } }>) =>
  new Response('Hello, ' + context.get('caller').subject);
const addOrder = listOrders;`;

const BY_FETCH = {
  before: `import { getRequestListener } from '@hono/node-server';`,
  dots: 'resolved',
} as const;

export const ROUTERS: Readonly<Record<string, Server>> = {
  'routes-express5': { ...ON_EXPRESS, before: `import express from 'express';${EXPRESS_HANDLERS}` },
  'routes-express4': {
    ...ON_EXPRESS,
    before: `import express from 'express4';${EXPRESS_HANDLERS}`,
    replaced: [[`from 'express'`, `from 'express4'`]],
  },
  'routes-fastify5': {
    heading: 'Routes of Fastify',
    hasPosts: true,
    dots: 'not found',
    before: `
import Fastify from 'fastify';
const fastify = Fastify();
const listOrders = async (request: FastifyRequest) =>
  'Hello, ' + request.getDecorator<Caller>('caller').subject;
const addOrder = listOrders;`,
    after: `
await fastify.listen({ port, host: '127.0.0.1' });
const { server } = fastify;`,
  },
  'routes-hono': {
    heading: 'Routes of Hono',
    hasPosts: true,
    dots: 'resolved',
    runtime: 'bun',
    before: `import { Hono, type Context } from 'hono';${HONO_HANDLERS}`,
    after: `
const server = Bun.serve({ port, hostname: '127.0.0.1', fetch: app.fetch });
console.log('listening ' + server.port);`,
  },
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
