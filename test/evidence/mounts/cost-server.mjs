/* The same handlers in a service and under @hono/node-server: the first word says which. Says its port, and
   for each line that it is sent, the processor time that it has used. */
import { createInterface } from 'node:readline';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { createService, mount, open } from 'gatehouse-http';
import { createTestIssuer } from 'gatehouse-http/testing';

const app = new Hono();
app.get('/hono', (context) => context.json({ hello: 'world' }));

const HANDLERS = {
  '/text': () => new Response('Hello'),
  '/json': () => Response.json({ hello: 'world' }),
  '/fields': ({ headers }) => new Response(headers.get('user-agent')),
  '/echo': async (request) => Response.json(await request.json()),
  '/hono': (request) => app.fetch(request),
};

const handle = (request) => HANDLERS[new URL(request.url).pathname](request);

async function listen(kind) {
  if (kind === 'mount') {
    const routes = Object.entries(HANDLERS).map(([path, handler]) => mount(path, open, handler));
    const options = { ...createTestIssuer().options, host: '127.0.0.1', port: 0 };
    return Number(new URL(await createService({ routes }, options).listen()).port);
  }
  return new Promise((resolve) => {
    serve({ fetch: handle, port: 0, hostname: '127.0.0.1' }, ({ port }) => resolve(port));
  });
}

console.log(await listen(process.argv[2]));
createInterface(process.stdin)
  .on('line', () => console.log(JSON.stringify(process.cpuUsage())))
  .once('close', () => process.exit());
