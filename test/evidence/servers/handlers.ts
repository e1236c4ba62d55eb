/* What applications have around the lines of the page: an `app`, and handlers for its routes. */

/** What the application of Express around the lines has. */
export const EXPRESS_HANDLERS = `
const listOrders: RequestHandler = (_request, response) => {
  response.end('Hello, ' + response.locals.caller.subject);
};
const addOrder = listOrders;`;

/** What the application of Hono around the lines has, with bindings of this type. */
export const honoWith = (bindings: string, base = '') => `
import { Hono, type Context } from 'hono';
const app = new Hono<{ Bindings: ${bindings} }>()${base};
const listOrders = (context: Context<{ Bindings: ${bindings}; Variables: { caller: Caller } }>) =>
  new Response('Hello, ' + context.get('caller').subject);
const addOrder = listOrders;`;
