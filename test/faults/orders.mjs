/* A service for tests of what is lost: it writes down each order that it takes, in the file LEDGER. */
import { appendFileSync } from 'node:fs';
import { created, get, json, open, post, runService } from '../../dist/gatehouse.js';

runService({
  routes: [
    get('/orders', open, () => ({ orders: [] })),
    post('/orders', open, json(), ({ body }) => {
      appendFileSync(process.env.LEDGER, `${body.id}\n`);
      return created(`/orders/${body.id}`, body);
    }),
  ],
});
