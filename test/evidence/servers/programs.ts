/* Whole programs made of the lines of the pages, one for each server: what stands around the lines, what runs them, and how
   they differ in what they answer. */
import { read, samplesUnder } from '../../docs/pages.ts';
import { EXPRESS_HANDLERS, honoWith } from './handlers.ts';
import { LAMBDA } from './lambda.ts';
import { NEST } from './nest.ts';
import { ROUTERS } from './routers.ts';

export const PAGE = 'docs/in-front-of-your-server.md';

export interface Server {
  /** The heading above its lines in the page. */
  readonly heading: string;
  /** `PAGE`, unless it is another. */
  readonly page?: string;
  /** Of the lines: TypeScript in `PAGE`, otherwise JavaScript, unless it is another. */
  readonly language?: 'ts';
  /** A heading whose first sample comes before these lines. */
  readonly also?: string;
  readonly before: string;
  /** Its last statement listens. Unless that prints the port, `server` is what listens. */
  readonly after?: string;
  /** The programs of `node_modules/.bin`, or Node 20, 22 and so on. */
  readonly runtime?: 'bun' | 'deno' | 'node22' | 'node24';
  readonly path?: string;
  /**
   * What the server does with dot segments before the gate sees them: it resolves them, so that it routes
   * what the gate judges, or it finds no route.
   */
  readonly dots?: 'resolved' | 'not found';
  /** Whether it hides a second `Authorization` field from the gate. */
  readonly hidesRepetition?: boolean;
  /** Whether posts need the scope to write. */
  readonly hasPosts?: boolean;
  /** Packages of the program's own: the name by which it imports each, and the one in `package.json`. */
  readonly modules?: Readonly<Record<string, string>>;
  /** Replaced in the lines. */
  readonly replaced?: readonly (readonly [was: string, is: string])[];
}

const ON_EXPRESS = {
  heading: 'Express 4 and 5',
  hasPosts: true,
  dots: 'not found',
  after: `
const server = createServer(app).listen(port, '127.0.0.1');`,
} as const;

const ON_FASTIFY = {
  heading: 'Fastify 5.3',
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
} as const;

const ON_HONO = { heading: 'Hono', hasPosts: true, before: honoWith('{}') } as const;

const KOA_ROUTE = `
app.use((context) => { context.body = 'Hello, ' + context.state.caller.subject; });`;

const H3_ROUTE = `
app.get('/api/orders', (event) => new Response('Hello, ' + (event.context.caller as Caller).subject));`;

const MOUNTED = { path: '/mounted/api/orders' };
const ON_BUN = `
const server = Bun.serve({ port, hostname: '127.0.0.1', fetch: app.fetch });
console.log('listening ' + server.port);`;

/** What stands around the lines of the page. */
export const SERVERS: Readonly<Record<string, Server>> = {
  'node-http': { heading: 'node:http', before: '' },
  express5: {
    ...ON_EXPRESS,
    before: `import express from 'express'; const app = express();${EXPRESS_HANDLERS}`,
  },
  readme: {
    dots: 'not found',
    page: 'README.md',
    heading: 'Express in twelve lines',
    before: '',
    // The program has a gate, and is TypeScript.
    replaced: [
      [`import { createGate, needs, scope } from 'gatehouse-http/gate';`, ''],
      [/^const gate = .*\n/m.exec(read('README.md'))?.[0] ?? '', ''],
      ['(access)', '(access: Access<Caller>)'],
      ['(request, response, next)', '(request: any, response: any, next: any)'],
      ["'/orders'", "'/api/orders'"],
      [
        'response.json(response.locals.caller.claims)',
        "response.end('Hello, ' + response.locals.caller.subject)",
      ],
      ['app.listen(3000)', "const server = app.listen(port, '127.0.0.1')"],
    ],
  },
  express4: {
    ...ON_EXPRESS,
    before: `import express from 'express4'; const app = express();${EXPRESS_HANDLERS}`,
    replaced: [[`from 'express'`, `from 'express4'`]],
  },
  'express-mounted': {
    ...ON_EXPRESS,
    ...MOUNTED,
    before: `import express from 'express'; const app = express.Router();${EXPRESS_HANDLERS}`,
    after: ON_EXPRESS.after.replace('createServer(app)', `createServer(express().use('/mounted', app))`),
  },
  fastify5: ON_FASTIFY,
  koa3: {
    heading: 'Koa 3',
    before: `import Koa from 'koa'; const app = new Koa();`,
    after: `${KOA_ROUTE}
const server = createServer(app.callback()).listen(port, '127.0.0.1');`,
  },
  'koa-mounted': {
    ...MOUNTED,
    heading: 'Koa 3',
    before: `import Koa from 'koa'; import mount from 'koa-mount'; const app = new Koa();`,
    after: `${KOA_ROUTE}
const outer = new Koa();
outer.use(mount('/mounted', app));
const server = createServer(outer.callback()).listen(port, '127.0.0.1');`,
  },
  'koa-express': {
    ...MOUNTED,
    heading: 'Koa 3',
    before: `import Koa from 'koa'; import express from 'express'; const app = new Koa();`,
    after: `${KOA_ROUTE}
const outer = express().use('/mounted', app.callback());
const server = createServer(outer).listen(port, '127.0.0.1');`,
  },
  ...NEST,
  ...LAMBDA,
  ...ROUTERS,
  'hono-node': {
    ...ON_HONO,
    before: `
import { getRequestListener, type HttpBindings } from '@hono/node-server';${honoWith('HttpBindings')}`,
    after: `
const server = createServer(getRequestListener(app.fetch)).listen(port, '127.0.0.1');`,
    replaced: [
      ['context.req.raw', 'context.env.incoming'],
      ['<{ Variables', '<{ Bindings: HttpBindings; Variables'],
    ],
  },
  'hono-app.request': {
    ...ON_HONO,
    dots: 'resolved',
    after: `
const server = createServer(async ({ method, url, headers, headersDistinct }, response) => {
  const given = Object.entries(headersDistinct).flatMap(([name, values = []]) =>
    values.map((value) => [name, value] as [string, string]));
  const asked = await app.request('http://' + headers.host + url, { method: method ?? '', headers: given });
  response.setHeaders(asked.headers).writeHead(asked.status).end(await new Response(asked.body).text());
}).listen(port, '127.0.0.1');`,
  },
  'hono-bun': { ...ON_HONO, runtime: 'bun', dots: 'resolved', after: ON_BUN },
  'hono-bun-basePath': {
    ...ON_HONO,
    ...MOUNTED,
    runtime: 'bun',
    dots: 'resolved',
    before: honoWith('{}', `.basePath('/mounted')`),
    after: ON_BUN,
  },
  'hono-deno': {
    ...ON_HONO,
    runtime: 'deno',
    dots: 'not found',
    after: `
const server = Deno.serve({ port, hostname: '127.0.0.1', onListen() {} }, app.fetch);
console.log('listening ' + server.addr.port);`,
  },
  h3: {
    heading: 'h3 2 and Nitro',
    dots: 'resolved',
    before: `import { H3 } from 'h3'; import { toNodeHandler } from 'h3/node'; const app = new H3();`,
    after: `${H3_ROUTE}
const server = createServer(toNodeHandler(app)).listen(port, '127.0.0.1');`,
  },
  'h3-base': {
    ...MOUNTED,
    heading: 'h3 2 and Nitro',
    dots: 'resolved',
    before: `import { H3, withBase } from 'h3'; import { toNodeHandler } from 'h3/node'; const app = new H3();`,
    after: `${H3_ROUTE.replace(`'/api/orders', (event) =>`, `'/mounted/api/orders', withBase('/mounted', (event) =>`).replace(');', '));')}
const server = createServer(toNodeHandler(app)).listen(port, '127.0.0.1');`,
  },
  'h3-bun': {
    runtime: 'bun',
    heading: 'h3 2 and Nitro',
    dots: 'resolved',
    before: `import { H3 } from 'h3'; const app = new H3();`,
    after: `${H3_ROUTE}${ON_BUN}`,
  },
  'Bun.serve': {
    runtime: 'bun',
    dots: 'resolved',
    heading: 'Any other server',
    before: '',
    after: `
const server = Bun.serve({ port, hostname: '127.0.0.1', fetch: readOrders });
console.log('listening ' + server.port);`,
  },
  elysia: {
    runtime: 'bun',
    dots: 'resolved',
    heading: 'Any other server',
    before: `import { Elysia } from 'elysia';`,
    after: `
const admitted = new WeakMap<Request, { caller: Caller; headers: [string, string][] }>();
const app = new Elysia()
  .onRequest(async ({ request }) => {
    if (new URL(request.url).host.length < 4) return new Response('', { status: 400 });
    const verdict = await gate.check(request, needs(scope('read:orders')));
    if (verdict.refusal) return new Response(verdict.refusal.body, verdict.refusal);
    admitted.set(request, verdict);
    return undefined;
  })
  .get('/api/orders', ({ request }) => {
    const { caller, headers } = admitted.get(request)!;
    return new Response('Hello, ' + caller.subject, { headers });
  });
${ON_BUN}`,
  },
  'whatwg-node': {
    heading: 'Any other server',
    before: `import { createServerAdapter } from '@whatwg-node/server';`,
    after: `
const server = createServer(createServerAdapter(readOrders)).listen(port, '127.0.0.1');`,
    hidesRepetition: true,
  },
  'Deno.serve': {
    runtime: 'deno',
    heading: 'Any other server',
    before: '',
    after: `
const server = Deno.serve({ port, hostname: '127.0.0.1', onListen() {} }, readOrders);
console.log('listening ' + server.addr.port);`,
  },
};

const SAYS_WHERE = `
if (!server.listening) await once(server, 'listening');
console.log('listening ' + (server.address() as AddressInfo).port);`;

/** A whole program around these lines; `last` is what it ends with. */
export function programOf(lines: string, before: string, after: string, last = ''): string {
  const inner = `${lines}\n${after}`.replace('.listen(3000)', `.listen(port, '127.0.0.1')`);
  const isNamed = /\bserver\b.* = |, server\b/.test(before + inner);
  const served = isNamed ? inner : inner.replace('createServer(', 'const server = createServer(');
  const own = lines.includes('import { createServer }') ? '' : `import { createServer } from 'node:http';`;
  return `
${own}
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { authenticated, createGate, needs, scope, type Access } from 'gatehouse-http';
${lines.includes('import type { Caller }') ? '' : "import type { Caller } from 'gatehouse-http';"}
declare const Bun: { serve(options: object): { port: number; stop(): void } };
declare const Deno: { serve(options: object, handler: unknown): { addr: AddressInfo; shutdown(): void } };
const port = 0;
const keys = process.env.KEYS_URL ?? '';
const gate = createGate({
  ...JSON.parse(process.env.GATE_OPTIONS ?? ''),
  fetchKeys: async (_: unknown, name: string) =>
    (await fetch(keys + '/' + name)).json() as Promise<Record<string, unknown>>,
});
${before}
${served}
${/console.log\('listening/.test(after) ? '' : SAYS_WHERE}
${last}
export type { Access, Caller, Server };
`;
}

export function programOfServer(server: Server) {
  const { heading, page = PAGE, also, before, after = '', replaced = [] } = server;
  const { language = page === PAGE ? 'ts' : 'js' } = server;
  const [first = ''] = also === undefined ? [] : samplesUnder(PAGE, also, 'ts');
  const lines = first + samplesUnder(page, heading, language).join('');
  const changed = replaced.reduce((text, [was, is]) => text.replace(was, is), lines);
  return programOf(changed, before, after);
}
