/* Schemas made by hand (Standard Schema v1), for tests that need no package. */
import type { Schema } from '../../src/service/routes/schema.ts';

type Validate<Output> = Schema<Output>['~standard']['validate'];

export const schemaOf = <Output>(validate: Validate<Output>): Schema<Output> => ({
  '~standard': { version: 1, validate },
});

export interface Order {
  readonly item: string;
}

const isOrder = (value: unknown): value is Order => typeof Object(value).item === 'string';

/** Accepts an object with a text `item`, and drops its other members. */
export const ORDER: Schema<Order> = schemaOf((value) =>
  isOrder(value)
    ? { value: { item: value.item } }
    : { issues: [{ message: 'must be text', path: ['item'] }] },
);
