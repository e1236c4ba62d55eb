// What a row takes beside its path: a query or a body, each judged by a schema. Promises: a value reaches a
// handler only as the schema's output. Does not decide when: row.ts does, after access.
import { andThen, type Later } from '../base/clock.ts';
import { refuseContent, type ContentFlaw } from '../base/refusal.ts';
import type { Incoming } from '../request/incoming.ts';
import { checkSchema, validate, type Schema } from '../request/schema.ts';

/** The query of a row, by its schema. */
export interface QueryTaken<Output> {
  readonly takes: 'query';
  readonly schema: Schema<Output>;
}

/** The JSON body of a row. */
export interface BodyTaken<Output> {
  readonly takes: 'body';
  readonly schema: Schema<Output> | undefined;
  readonly limitBytes: number | undefined;
  readonly types: readonly string[];
}

export interface BodyTakenOptions {
  /** 1 to 16,777,216; without it the setting `BODY_LIMIT_BYTES` decides. */
  readonly limitBytes?: number;
  /** Media types that are taken instead of `application/json`. */
  readonly types?: readonly [string, ...string[]];
}

const MAX_LIMIT_BYTES = 16_777_216;

/** RFC 9110 §8.3.1: a type and a subtype, in lower case. */
const MEDIA_TYPE = /^[!#$%&'*+.^_`|~0-9a-z-]+\/[!#$%&'*+.^_`|~0-9a-z-]+$/;

/**
 * The row takes a query that fits the schema (Standard Schema v1), and its handler gets the output as
 * `query`. The schema sees an object without prototype: text for a name that occurs once, an array of texts
 * for one that is repeated. Any other query is 400 `invalid_query`. Throws a `TypeError` for what is no
 * schema.
 *
 * @example get('/api/orders', authenticated, query(Page), ({ query }) => orders.list(query.after))
 */
export function query<Output>(schema: Schema<Output>): QueryTaken<Output> {
  return { takes: 'query', schema: checkSchema(schema) };
}

/**
 * The row takes a JSON body (RFC 8259), which is read once access is granted; its handler gets the schema's
 * output as `body`, or without a schema the JSON value as it is. Throws a `TypeError` for what is no schema,
 * limit or media type.
 *
 * @example
 * post('/api/orders', needs(scope('write:orders')), json(Order), ({ body }) => created(orders.add(body)))
 */
export function json<Output = unknown>(
  schema?: Schema<Output>,
  { limitBytes, types = ['application/json'] }: BodyTakenOptions = {},
): BodyTaken<Output> {
  const isLimit =
    Number.isInteger(limitBytes) && Number(limitBytes) >= 1 && Number(limitBytes) <= MAX_LIMIT_BYTES;
  if (limitBytes !== undefined && !isLimit) {
    throw new TypeError(`limitBytes must be a whole number from 1 to ${MAX_LIMIT_BYTES}`);
  }
  if (!types.every((type) => MEDIA_TYPE.test(type))) {
    throw new TypeError('types must be media types in lower case, without parameters');
  }

  return { takes: 'body', schema: schema && checkSchema(schema), limitBytes, types };
}

/** The query as its schema takes it. Throws `Refused`, or rejects with it. */
export function takeQuery({ schema }: QueryTaken<unknown>, { searchParams }: Incoming): Later<unknown> {
  const values = Object.create(null);
  for (const name of searchParams.keys()) {
    const texts = searchParams.getAll(name);
    values[name] = texts.length === 1 ? texts[0] : texts;
  }
  return outputOf(schema, values, 'query-refused');
}

/** The body as its schema takes it. Rejects with `Refused` or with `ClientGone`. */
export function takeBody(
  taken: BodyTaken<unknown>,
  incoming: Incoming,
  limitBytes: number,
): Promise<unknown> {
  const { schema, types } = taken;
  const body = incoming.readBody({ types, limitBytes: taken.limitBytes ?? limitBytes });
  return schema === undefined ? body : body.then((value) => outputOf(schema, value, 'body-refused'));
}

function outputOf(schema: Schema<unknown>, value: unknown, flaw: ContentFlaw): Later<unknown> {
  return andThen(validate(schema, value), (verdict) => {
    if ('issues' in verdict) throw refuseContent(flaw, [], verdict.issues);
    return verdict.output;
  });
}
