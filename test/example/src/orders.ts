/* The orders, as a database would keep them. */
import { randomUUID } from 'node:crypto';
import type { NewOrder, OrderChange, OrderFilter } from './schemas.ts';

/** The owner of an order: issuer and subject, since a subject is unique only within its issuer. */
export interface Owner {
  readonly issuer: string;
  readonly subject: string;
}

export interface Order extends NewOrder {
  readonly id: string;
  readonly owner: Owner;
  readonly status: 'open' | 'shipped';
}

const isOf = ({ owner }: Order, { issuer, subject }: Owner) =>
  owner.issuer === issuer && owner.subject === subject;

export class Orders {
  readonly #orders = new Map<string, Order>();

  /** What nobody may choose comes last: a schema may let more members pass than it names. */
  add({ issuer, subject }: Owner, order: NewOrder): Order {
    return this.#keep({ ...order, id: randomUUID(), owner: { issuer, subject }, status: 'open' });
  }

  find(owner: Owner, id: string): Order | undefined {
    const order = this.#orders.get(id);
    return order && isOf(order, owner) ? order : undefined;
  }

  list(owner: Owner, { status, limit }: OrderFilter): Order[] {
    const own = [...this.#orders.values()].filter((order) => isOf(order, owner));
    return own.filter((order) => status === undefined || order.status === status).slice(0, limit);
  }

  change({ id, owner, ...order }: Order, change: OrderChange): Order {
    return this.#keep({ ...order, ...change, id, owner });
  }

  remove({ id }: Order): void {
    this.#orders.delete(id);
  }

  #keep(order: Order): Order {
    this.#orders.set(order.id, order);
    return order;
  }
}
