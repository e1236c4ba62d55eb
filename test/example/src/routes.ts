/* The whole API: who may do what, and what they get. */
import {
  created,
  del,
  fail,
  get,
  json,
  needs,
  noContent,
  patch,
  post,
  query,
  scope,
  type Caller,
  type Route,
} from 'gatehouse-http';
import type { Order, Orders } from './orders.ts';
import { NewOrder, OrderChange, OrderFilter } from './schemas.ts';

const mayRead = needs(scope('read:orders'));

const mayWrite = needs(scope('write:orders'));

export function routesOf(orders: Orders): readonly Route[] {
  function find(caller: Caller, id: string): Order {
    const order = orders.find(caller, id);
    // Somebody else's order gets 404 too, so that callers cannot learn that it exists.
    if (order === undefined) throw fail(404, 'not_found', 'There is no such order');

    return order;
  }

  function findOpen(caller: Caller, id: string): Order {
    const order = find(caller, id);
    if (order.status !== 'open') throw fail(409, 'conflict', 'The order has been shipped');

    return order;
  }

  return [
    get('/api/orders', mayRead, query(OrderFilter), ({ caller, query }) => ({
      orders: orders.list(caller, query),
    })),

    post('/api/orders', mayWrite, json(NewOrder), ({ caller, body }) => {
      const order = orders.add(caller, body);
      return created(`/api/orders/${order.id}`, order);
    }),

    get('/api/orders/{id}', mayRead, ({ caller, parameters }) => find(caller, parameters.id)),

    patch('/api/orders/{id}', mayWrite, json(OrderChange), ({ caller, parameters, body }) =>
      orders.change(findOpen(caller, parameters.id), body),
    ),

    del('/api/orders/{id}', mayWrite, ({ caller, parameters }) => {
      orders.remove(findOpen(caller, parameters.id));
      return noContent();
    }),
  ];
}
