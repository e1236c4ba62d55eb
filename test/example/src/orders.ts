/* The orders, as a database would keep them. */
import { randomUUID } from 'node:crypto';
import type { NewOrder, OrderChange, OrderFilter } from './schemas.ts';

export interface Order extends NewOrder {
  readonly id: string;
  readonly owner: string;
  readonly status: 'open' | 'shipped';
}

export class Orders {
  readonly #orders = new Map<string, Order>();

  add(owner: string, order: NewOrder): Order {
    return this.#keep({ id: randomUUID(), owner, ...order, status: 'open' });
  }

  find(owner: string, id: string): Order | undefined {
    const order = this.#orders.get(id);
    return order?.owner === owner ? order : undefined;
  }

  list(owner: string, { status, limit }: OrderFilter): Order[] {
    const own = [...this.#orders.values()].filter((order) => order.owner === owner);
    return own.filter((order) => status === undefined || order.status === status).slice(0, limit);
  }

  change(order: Order, change: OrderChange): Order {
    return this.#keep({ ...order, ...change });
  }

  remove({ id }: Order): void {
    this.#orders.delete(id);
  }

  #keep(order: Order): Order {
    this.#orders.set(order.id, order);
    return order;
  }
}
