// tRPC in a service: procedures that say what they need, batches, and a subscription that ends with the
// caller's token.
import { EventEmitter, on } from 'node:events';
import { initTRPC, TRPCError } from '@trpc/server';
import { fetchRequestHandler } from '@trpc/server/adapters/fetch';
import { authenticated, mount, needs, runService, scope } from 'gatehouse-http';
import { z } from 'zod';

const orders = [{ id: '1', item: 'tea' }];
const changes = new EventEmitter();

// Otherwise, unless NODE_ENV is `production`, its errors tell the client where the files are.
const t = initTRPC.context().create({ isDev: false });

const CODES = { 401: 'UNAUTHORIZED', 403: 'FORBIDDEN', 503: 'SERVICE_UNAVAILABLE' };

/** A refused procedure leaves the others of its batch alone. Its challenges are of the whole response. */
const procedure = (access) =>
  t.procedure.use(async ({ ctx, next }) => {
    const { refusal } = await ctx.authorize(access);
    if (!refusal) return next();

    const challenges = refusal.headers.filter(([name]) => name === 'WWW-Authenticate');
    for (const [name, value] of challenges) ctx.fields.append(name, value);
    throw new TRPCError({ code: CODES[refusal.status] });
  });

const reading = procedure(needs(scope('read:orders')));
const writing = procedure(needs(scope('write:orders')));

const router = t.router({
  list: reading.query(() => orders),
  add: writing.input(z.object({ item: z.string() })).mutation(({ input }) => {
    const order = { id: String(orders.length + 1), ...input };
    orders.push(order);
    changes.emit('added', order);
    return order;
  }),
  added: reading.subscription(async function* ({ signal }) {
    for await (const [order] of on(changes, 'added', { signal })) yield order;
  }),
});

/** tRPC keeps the error of a body that is too long to itself. Read here, the service sends its 413. */
async function serve(request, { caller, authorize }) {
  const body = request.body && (await request.arrayBuffer());
  const req = new Request(request, { body, signal: request.signal });
  const createContext = ({ resHeaders }) => ({ caller, authorize, fields: resHeaders });
  return fetchRequestHandler({ endpoint: '/trpc', req, router, createContext });
}

await runService({ routes: [mount('/trpc', authenticated, serve, { limitBytes: 65_536 })] });
