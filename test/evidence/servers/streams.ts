/* Streams and WebSockets with the lines of docs/streams.md: each ends with its token, stays open while the token lives, lets go
   of everything when its client leaves, and lets the process end. */
import { strict as assert } from 'node:assert';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { addAbortSignal } from 'node:stream';
import { io as openSocketIo, type Socket } from 'socket.io-client';
import { WebSocket } from 'ws';
import type { TestIssuer } from '../../../src/testing.ts';
import { samplesUnder } from '../../docs/pages.ts';
import { send, type Target } from './ask.ts';
import { programOf } from './programs.ts';
import type { Running } from './workshop.ts';

const PAGE = 'docs/streams.md';

interface Stream {
  /** The headings above its lines in the page; `refuse` is the first sample under the second one. */
  readonly headings: readonly string[];
  readonly before?: string;
  readonly after?: string;
  /** The lines make a handler for a framework, and no server. */
  readonly isHandler?: boolean;
  /** What is asked before a connection opens. */
  readonly handshakes?: readonly Omit<Target, 'url' | 'publicUrl'>[];
  readonly check?: (running: Running, issuer: TestIssuer) => Promise<void>;
  readonly runtime?: 'bun' | 'deno';
}

const SERVER = `const server = createServer().listen(port, '127.0.0.1');`;
const ON_NODE = 'Server-sent events on node:http';
const FETCH = 'Server-sent events on Fetch servers';

/** With these fields a request is one for a WebSocket. */
const UPGRADE = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': Buffer.alloc(16, 'k').toString('base64'),
};

export const STREAMS: Readonly<Record<string, Stream>> = {
  'events-node': { headings: [ON_NODE] },
  'events-express5': {
    headings: [ON_NODE],
    isHandler: true,
    before: `import express from 'express';`,
    after: `
const server = createServer(express().get('/api/orders', readOrders)).listen(port, '127.0.0.1');`,
  },
  'events-koa3': {
    headings: [ON_NODE],
    isHandler: true,
    before: `import Koa from 'koa';`,
    after: `
const app = new Koa();
app.use(async (context) => {
  context.respond = false;
  await readOrders(context.req, context.res);
});
const server = createServer(app.callback()).listen(port, '127.0.0.1');`,
  },
  'events-fastify5': {
    headings: [ON_NODE],
    isHandler: true,
    before: `import Fastify from 'fastify';`,
    after: `
const fastify = Fastify();
fastify.get('/api/orders', async (request, reply) => {
  reply.hijack();
  await readOrders(request.raw, reply.raw);
});
await fastify.listen({ port, host: '127.0.0.1' });
const { server } = fastify;`,
  },
  'events-hono': {
    headings: [FETCH],
    before: `import { getRequestListener } from '@hono/node-server';`,
    after: `
const server = createServer(getRequestListener(readOrders)).listen(port, '127.0.0.1');`,
  },
  'events-bun': {
    headings: [FETCH],
    runtime: 'bun',
    after: `
const bun = Bun.serve({ port, hostname: '127.0.0.1', fetch: readOrders });
const server = { close: () => bun.stop() };
console.log('listening ' + bun.port);`,
  },
  'events-deno': {
    headings: [FETCH],
    runtime: 'deno',
    after: `
const deno = Deno.serve({ port, hostname: '127.0.0.1', onListen() {} }, readOrders);
const server = { close: () => deno.shutdown() };
console.log('listening ' + deno.addr.port);`,
  },
  'upgrade-ws': {
    headings: ['WebSocket with ws'],
    before: SERVER,
    handshakes: [{ path: '/api/orders', fields: UPGRADE }],
    check: checkWebSockets,
  },
  'socket.io': {
    headings: ['Socket.IO', 'WebSocket with ws'],
    before: SERVER,
    after: `process.stdin.once('end', () => io.close());`,
    handshakes: [
      { path: '/socket.io/', query: '?EIO=4&transport=polling' },
      { path: '/socket.io/', query: '?EIO=4&transport=websocket', fields: UPGRADE },
    ],
    check: checkSocketIo,
  },
};

/** Counts the timers that wait as long as a timer can. */
const COUNTED = `
import { EventEmitter } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
const orders = new EventEmitter();
const timers = new Set<unknown>();
const { setTimeout: set, clearTimeout: clear } = globalThis;
globalThis.setTimeout = ((run: () => void, millis: number, ...given: []) => {
  const timer = set(run, millis, ...given);
  if (millis === 2 ** 31 - 1) timers.add(timer);
  return timer;
}) as typeof setTimeout;
globalThis.clearTimeout = (timer) => {
  timers.delete(timer);
  clear(timer);
};`;

/** Each line is an order, and is answered with what the process holds on to. */
const TOLD = `
const told = createInterface(process.stdin);
told.on('line', (text) => {
  if (text !== '') orders.emit('change', { text });
  console.log(timers.size + ' ' + orders.listenerCount('change'));
});
told.once('close', () => {
  server.close();
  gate.close();
});`;

/** Takes the server away. */
const asHandler = (lines: string) =>
  `import type { IncomingMessage, ServerResponse } from 'node:http';\n${lines}`
    .replace(
      'createServer(async (request, response) =>',
      'const readOrders = async (request: IncomingMessage, response: ServerResponse) =>',
    )
    .replace('}).listen(3000);', '};');

export function programOfStream({ headings, before = '', after = '', isHandler = false }: Stream): string {
  const pieces = ['Time left', ...headings].map((heading) => samplesUnder(PAGE, heading, 'ts'));
  const [left = [], own = [], [refuse = ''] = []] = pieces;
  const lines = [...left, refuse, ...own].join('');
  return programOf(isHandler ? asHandler(lines) : lines, `${COUNTED}\n${before}`, after, TOLD);
}

const IN_A_CENTURY = 3_155_760_000;
const MOST_MILLIS = 5_000;

/** What the process holds on to, once it has seen a new order. */
async function tell({ child }: Running, order: string): Promise<string> {
  const lines = createInterface(child.stdout);
  child.stdin.write(`${order}\n`);
  const [said] = (await once(lines, 'line', { signal: AbortSignal.timeout(MOST_MILLIS) })) as [string];
  lines.close();
  return said;
}

/** Its client has left, which the process may still have to notice. */
async function untilFree(running: Running) {
  const deadline = AbortSignal.timeout(MOST_MILLIS);
  while ((await tell(running, '')) !== '0 0') deadline.throwIfAborted();
}

/** A refused client that keeps its side open loses the connection all the same. */
async function checkRefused({ url }: Running) {
  const { hostname, port } = new URL(url);
  const signal = AbortSignal.timeout(MOST_MILLIS);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true }).on('error', () => {});
  const fields = Object.entries({ host: hostname, ...UPGRADE }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  socket.write(`GET /api/orders HTTP/1.1\r\n${fields.join('')}\r\n`);
  await once(socket.resume(), 'end', { signal });

  const writeOn = () => socket.write('more', (error) => error ?? writeOn());

  writeOn();
  await once(socket, 'error', { signal }).finally(() => socket.destroy());
}

const nowSeconds = () => Date.now() / 1000;

/** Half a second is more than the way to the server and back takes. */
const soon = () => nowSeconds() + 0.5;

async function checkEvents(running: Running, issuer: TestIssuer) {
  const open = async (exp: number): Promise<IncomingMessage> => {
    const headers = issuer.bearer({ scope: 'read:orders', exp });
    const response = await send(running.url, '/api/orders', headers);
    assert.equal(response.statusCode, 200);
    assert.equal(response.headers['content-type'], 'text/event-stream');
    return addAbortSignal(AbortSignal.timeout(MOST_MILLIS), response.setEncoding('utf8'));
  };

  const long = await open(nowSeconds() + IN_A_CENTURY);
  const exp = soon();
  const short = await open(exp);
  assert.equal(await tell(running, 'tea'), '1 2');
  assert.match((await short.toArray()).join(''), /^(?:: open\n\n)?data: \{"text":"tea"\}\n\n$/);
  assert.ok(nowSeconds() >= exp);
  assert.equal(await tell(running, 'milk'), '1 1');
  let heard = '';
  for await (const text of long) {
    heard += text;
    if (heard.includes('milk')) break;
  }
}

async function checkWebSockets(running: Running, issuer: TestIssuer) {
  const open = async (exp: number) => {
    const headers = issuer.bearer({ scope: 'read:orders', exp });
    const webSocket = new WebSocket(running.url.replace('http', 'ws'), { headers });
    await once(webSocket, 'open');
    return webSocket;
  };

  await checkRefused(running);
  const long = await open(nowSeconds() + IN_A_CENTURY);
  const exp = soon();
  const signal = AbortSignal.timeout(MOST_MILLIS);
  const [code] = (await once(await open(exp), 'close', { signal })) as [number];
  assert.equal(code, 1008);
  assert.ok(nowSeconds() >= exp);
  assert.equal(long.readyState, WebSocket.OPEN);
  assert.equal(await tell(running, ''), '1 0');
  long.terminate();
}

/** By each transport: a message comes back, a connection ends with its token, and a refused client is told. */
async function checkSocketIo(running: Running, issuer: TestIssuer) {
  const signal = AbortSignal.timeout(MOST_MILLIS);

  for (const transport of ['polling', 'websocket']) {
    const open = (claims: object): Socket => {
      const extraHeaders = issuer.bearer({ scope: 'read:orders', ...claims });
      return openSocketIo(running.url, { transports: [transport], extraHeaders, reconnection: false });
    };

    const next = (socket: Socket, event: string) =>
      new Promise<unknown>((resolve, reject) => {
        socket.once(event, resolve);
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      });

    const long = open({ exp: nowSeconds() + IN_A_CENTURY });
    const greeting = next(long, 'message');
    long.emit('message', 'hello');
    assert.equal(await greeting, 'test-user said hello');
    const exp = soon();
    await next(open({ exp }), 'disconnect');
    assert.ok(nowSeconds() >= exp);
    assert.equal(long.connected, true);
    assert.equal(await tell(running, ''), '1 0');
    long.disconnect();

    await next(open({ scope: 'none' }), 'connect_error');
    await untilFree(running);
  }
}

/** Throws what is wrong. */
export async function checkStream(running: Running, issuer: TestIssuer, { check = checkEvents }: Stream) {
  await check(running, issuer);
  await untilFree(running);
  running.child.stdin.end();
  const [code] = await once(running.child, 'exit', { signal: AbortSignal.timeout(MOST_MILLIS) });
  assert.equal(code, 0);
}
