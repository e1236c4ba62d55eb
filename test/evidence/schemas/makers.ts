/* The same orders and pages, as schemas of zod, valibot and ArkType. Their output differs from their input:
   texts are changed, and missing members are filled in. */
import { type } from 'arktype';
import * as v from 'valibot';
import { z } from 'zod';
import type { Schema } from '../../../src/service/routes/schema.ts';

export interface Order {
  item: string;
  count: number;
  lines: { sku: string; amount: number }[];
}

export interface Page {
  after: number;
}

const isFree = async (item: string) => item !== 'TAKEN';

function fail(): never {
  throw new TypeError('a bug of the schema');
}

const zodLine = z.object({ sku: z.string(), amount: z.number() });

const zodOrder = z.object({
  item: z
    .string()
    .min(1)
    .transform((text) => text.toUpperCase()),
  count: z.number().int().default(1),
  lines: z.array(zodLine).default([]),
});

const zodFreeOrder = zodOrder.refine(({ item }) => isFree(item), { path: ['item'] });

const valibotLine = v.object({ sku: v.string(), amount: v.number() });

const valibotOrder = v.object({
  item: v.pipe(
    v.string(),
    v.minLength(1),
    v.transform((text) => text.toUpperCase()),
  ),
  count: v.optional(v.pipe(v.number(), v.integer()), 1),
  lines: v.optional(v.array(valibotLine), []),
});

const valibotFreeOrder = v.objectAsync({
  ...valibotOrder.entries,
  item: v.pipeAsync(valibotOrder.entries.item, v.checkAsync(isFree)),
});

const arkLine = type({ sku: 'string', amount: 'number' });

const arkOrder = type({
  item: type('string > 0').pipe((text) => text.toUpperCase()),
  count: 'number.integer = 1',
  lines: arkLine.array().default(() => []),
});

/** A schema as each maker makes it. */
export const MAKERS = {
  zod: {
    order: zodOrder,
    freeOrder: zodFreeOrder,
    page: z.object({ after: z.coerce.number() }),
    broken: z.string().transform(fail),
  },
  valibot: {
    order: valibotOrder,
    freeOrder: valibotFreeOrder,
    page: v.object({ after: v.pipe(v.string(), v.regex(/^\d+$/), v.transform(Number)) }),
    broken: v.pipe(v.string(), v.transform(fail)),
  },
  ArkType: {
    order: arkOrder,
    // ArkType has only synchronous schemas.
    freeOrder: undefined,
    page: type({ after: 'string.numeric.parse' }),
    broken: type('string').pipe(fail),
  },
} satisfies Record<
  string,
  {
    readonly order: Schema<Order>;
    readonly freeOrder: Schema<Order> | undefined;
    readonly page: Schema<Page>;
    readonly broken: Schema<never>;
  }
>;
