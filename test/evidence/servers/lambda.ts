/* Express and Hono on AWS Lambda with the lines of the page: real adapters, and events as AWS makes them. */
import { readFileSync } from 'node:fs';
import { EXPRESS_HANDLERS, honoWith } from './handlers.ts';
import type { Server } from './programs.ts';

const EVENTS = readFileSync(new URL('lambda-events.ts', import.meta.url), 'utf8').replace(/^export /gm, '');

const serverOf = (kind: string) => `
${EVENTS}
const server = createServer(async (request, response) => {
  sendResult(await (handler as Function)(eventOf('${kind}', request), {}), response);
}).listen(port, '127.0.0.1');`;

/** The request that the page gives the gate on each adapter. */
const EVENT_OF = {
  express: 'requestOf(getCurrentInvoke().event)',
  serverlessHttp: 'requestOf(Object(request).apiGateway.event)',
  hono: 'requestOf(context.env.event)',
};

const ON_EXPRESS: Server = {
  also: 'AWS Lambda',
  heading: 'Express 4 and 5',
  runtime: 'node24',
  dots: 'not found',
  before: `
import { configure, getCurrentInvoke } from '@codegenie/serverless-express';
import express from 'express';
const app = express();${EXPRESS_HANDLERS}`,
  replaced: [['gate.admit(request,', `gate.admit(${EVENT_OF.express},`]],
};

/** The adapter's request is no stream for the 404 that Express sends by itself. */
const EXPRESS_HANDLER = `
app.use((_request, response) => { response.status(404).end(); });
const handler = configure({ app });`;

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

const ON_SERVERLESS_HTTP: Server = {
  ...ON_EXPRESS,
  before: `
import adapt from 'serverless-http';
import express from 'express';
const app = express();${EXPRESS_HANDLERS}`,
  replaced: [['gate.admit(request,', `gate.admit(${EVENT_OF.serverlessHttp},`]],
};

const SERVERLESS_HANDLER = `
const handler = adapt(app);`;

const BINDINGS = '{ event: LambdaEvent }';

const ON_HONO: Server = {
  also: 'AWS Lambda',
  heading: 'Hono',
  before: `import { handle } from 'hono/aws-lambda';${honoWith(BINDINGS)}`,
  replaced: [
    ['context.req.raw', EVENT_OF.hono],
    ['<{ Variables', `<{ Bindings: ${BINDINGS}; Variables`],
  ],
};

const HONO_HANDLER = `
const handler = handle(app);`;

/** The path as the client sees it: a REST API has its stage in it, and routes do not. */
const KINDS = { rest: '/prod/api/orders', http: '/api/orders', balancer: '/api/orders' };

const EACH = Object.fromEntries(
  Object.entries(KINDS).flatMap(([kind, path]): [string, Server][] => [
    [`lambda-express-${kind}`, { ...ON_EXPRESS, path, after: EXPRESS_HANDLER + serverOf(kind) }],
    [
      `lambda-serverless-http-${kind}`,
      { ...ON_SERVERLESS_HTTP, path, after: SERVERLESS_HANDLER + serverOf(kind) + EMPTY },
    ],
    [`lambda-hono-${kind}`, { ...ON_HONO, path, after: HONO_HANDLER + serverOf(kind) }],
  ]),
);

/** A named stage of an HTTP API is in the path of the routes too. */
export const LAMBDA: Readonly<Record<string, Server>> = {
  ...EACH,
  'lambda-express-http-stage': {
    ...ON_EXPRESS,
    path: '/prod/api/orders',
    after: EXPRESS_HANDLER.replace('{ app }', `{ app: express().use('/prod', app) }`) + serverOf('http'),
  },
};
