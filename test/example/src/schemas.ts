/* What callers may send. Written by hand here. With zod, valibot or ArkType it is shorter, and nothing else changes:
   `export const NewOrder = z.object({ item: z.string().min(1).max(100), … })` and
   `export type NewOrder = z.output<typeof NewOrder>`. */
import type { Schema } from 'gatehouse-http';

export interface NewOrder {
  readonly item: string;
  readonly quantity: number;
}

export type OrderChange = Readonly<{ quantity: number } | { status: 'shipped' }>;

export interface OrderFilter {
  readonly status?: string;
  readonly limit: number;
}

type Validate<Output> = Schema<Output>['~standard']['validate'];

const schemaOf = <Output>(validate: Validate<Output>): Schema<Output> => ({
  '~standard': { version: 1, validate },
});

const refuse = (member: string, message: string) => ({ issues: [{ path: [member], message }] });

const isItem = (value: unknown) => typeof value === 'string' && value !== '' && value.length <= 100;

const isCount = (value: unknown) => Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 100;

export const NewOrder = schemaOf<NewOrder>((value) => {
  const { item, quantity = 1 } = Object(value);
  if (!isItem(item)) return refuse('item', 'must be a text of 1 to 100 characters');
  if (!isCount(quantity)) return refuse('quantity', 'must be a whole number from 1 to 100');

  return { value: { item, quantity } };
});

export const OrderChange = schemaOf<OrderChange>((value) => {
  const { status, quantity } = Object(value);
  if (status === 'shipped') return { value: { status } };
  if (isCount(quantity)) return { value: { quantity } };

  return refuse('status', 'must be "shipped", or quantity a whole number from 1 to 100');
});

/** Query values are strings. */
export const OrderFilter = schemaOf<OrderFilter>((value) => {
  const { status, limit = '20' } = Object(value);
  if (!isCount(Number(limit))) return refuse('limit', 'must be a whole number from 1 to 100');
  if (status === undefined) return { value: { limit: Number(limit) } };
  if (status !== 'open' && status !== 'shipped') return refuse('status', 'must be "open" or "shipped"');

  return { value: { status, limit: Number(limit) } };
});
