/* Express and Hono on AWS Lambda with the lines of the page: real adapters, and events as AWS makes them. */
import { readFileSync } from 'node:fs';
import type { Server } from './programs.ts';

const EVENTS = readFileSync(new URL('lambda-events.ts', import.meta.url), 'utf8').replace(/^export /gm, '');

const serverOf = (kind: string) => `
${EVENTS}
const server = createServer(async (request, response) => {
  sendResult(await (handler as Function)(eventOf('${kind}', request), {}), response);
}).listen(port, '127.0.0.1');`;

const HELLO = `
app.get('/api/orders', (_request, response) => {
  response.end('Hello, ' + response.locals.caller.subject);
});`;

const ON_EXPRESS: Server = {
  also: 'AWS Lambda',
  heading: 'Express on Lambda',
  runtime: 'node24',
  before: `import express from 'express'; const app = express();`,
};

/** The adapter leaves `rawHeaders` empty: the gate must say so. */
const EMPTY = `
const asked = adapt((request: IncomingMessage, response: ServerResponse) =>
  gate.check(request, authenticated).then(
    () => response.end('it has been checked'),
    (error: unknown) => response.end(String(error)),
  ),
);
const told = JSON.stringify(await asked(eventOf('http', { method: 'GET', url: '/', rawHeaders: ['Host', 'a.test'] } as never), {}));
if (!/TypeError: .*rawHeaders/.test(told)) throw new Error(told);`;

/** The adapter gives the event another way. */
const SERVERLESS_HTTP: Server['replaced'] = [
  [
    `import { configure, getCurrentInvoke } from '@codegenie/serverless-express';`,
    `import adapt from 'serverless-http';`,
  ],
  ['getCurrentInvoke().event', 'Object(request).apiGateway.event'],
  ['configure({ app })', 'adapt(app)'],
];

const ON_HONO: Server = {
  also: 'AWS Lambda',
  heading: 'Hono on Lambda',
  before: '',
};

const HONO_ROUTE = `
app.get('/api/orders', (context) => new Response('Hello, ' + context.get('caller').subject));`;

/** The path as the client sees it: a REST API has its stage in it, and routes do not. */
const KINDS = { rest: '/prod/api/orders', http: '/api/orders', balancer: '/api/orders' };

const EACH = Object.fromEntries(
  Object.entries(KINDS).flatMap(([kind, path]): [string, Server][] => [
    [`lambda-express-${kind}`, { ...ON_EXPRESS, path, after: HELLO + serverOf(kind) }],
    [
      `lambda-serverless-http-${kind}`,
      { ...ON_EXPRESS, path, after: HELLO + serverOf(kind) + EMPTY, replaced: SERVERLESS_HTTP },
    ],
    [`lambda-hono-${kind}`, { ...ON_HONO, path, after: HONO_ROUTE + serverOf(kind) }],
  ]),
);

/** A named stage of an HTTP API is in the path of the routes too. */
export const LAMBDA: Readonly<Record<string, Server>> = {
  ...EACH,
  'lambda-express-http-stage': {
    ...ON_EXPRESS,
    path: '/prod/api/orders',
    after: HELLO + serverOf('http'),
    replaced: [['configure({ app })', `configure({ app: express().use('/prod', app) })`]],
  },
};
