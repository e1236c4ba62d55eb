// gatehouse with routes of one's own: one as profile B has it, and one that takes a body through a Standard Schema.
import { authenticated, json, get, post, runService } from '../../../../dist/gatehouse.js';
import { answerTo, isOrder } from './orders.mjs';

const validate = (value) => (isOrder(value) ? { value } : { issues: [{ message: 'is no order' }] });
const order = { '~standard': { version: 1, vendor: 'bench', validate } };

runService({
  routes: [
    get('/api/private', authenticated, ({ caller, nowMillis }) => {
      const timestamp = new Date(nowMillis).toISOString();
      return { message: 'Hello from a private endpoint!', user: caller.subject, timestamp };
    }),
    post('/api/orders', authenticated, json(order), ({ body }) => answerTo(body)),
  ],
});
