// What a route takes beside its path: a query or a body, each judged by a schema. Promises: a value reaches
// a handler only as the schema's output. Does not decide when: the pipeline does, after access.
import { isListOf } from '../../verify/base/encoding.ts';
import { judge, schemaFault, type Schema } from './schema.ts';

/** The query of a route, by its schema; `judge` throws `Refused`, or rejects with it. */
export interface QueryTaken<Output> {
  readonly takes: 'query';
  /** Why no service can have it. */
  readonly fault: string | undefined;
  readonly judge: (given: URLSearchParams) => Output | Promise<Output>;
}

/** The JSON body of a route; `judge` throws `Refused`, or rejects with it. */
export interface BodyTaken<Output> {
  readonly takes: 'body';
  /** Why no service can have it. */
  readonly fault: string | undefined;
  readonly limitBytes: number | undefined;
  readonly types: readonly string[];
  readonly judge: (body: unknown) => Output | Promise<Output>;
}

/** What a route says of its body beside its schema. */
export interface BodyTakenOptions {
  /** 1 to 16,777,216; without it the setting `BODY_LIMIT_BYTES` decides. */
  readonly limitBytes?: number;
  /** Media types that are taken instead of `application/json`. */
  readonly types?: readonly [string, ...string[]];
}

const MAX_LIMIT_BYTES = 16_777_216;

/** RFC 9110 §8.3.1: a type and a subtype, in lower case. */
const MEDIA_TYPE = /^[!#$%&'*+.^_`|~0-9a-z-]+\/[!#$%&'*+.^_`|~0-9a-z-]+$/;

/** Any JSON value. */
const ANYTHING: Schema = { '~standard': { version: 1, validate: (value) => ({ value }) } };

/**
 * The route takes a query that fits the schema (Standard Schema v1), and its handler gets the output as
 * `query`. The schema sees an object without prototype: text for a name that occurs once, an array of texts
 * for one that is repeated. Any other query is 400 `invalid_query`. What is no schema stops the start.
 *
 * @example get('/api/orders', authenticated, query(Page), ({ query }) => orders.list(query.after))
 */
export function query<Output>(schema: Schema<Output>): QueryTaken<Output> {
  return {
    takes: 'query',
    fault: schemaFault(schema),
    judge: (given: URLSearchParams) => judge(schema, valuesOf(given), 'query-refused'),
  };
}

/**
 * The route takes a JSON body (RFC 8259), which is read once access is granted; its handler gets the
 * schema's output as `body`, or without a schema the JSON value as it is. What is no schema, limit or media
 * type stops the start.
 *
 * @example
 * post('/api/orders', needs(scope('write:orders')), json(Order), ({ body }) => orders.add(body))
 */
export function json(schema?: undefined, options?: BodyTakenOptions): BodyTaken<unknown>;

/**
 * The same with a schema (Standard Schema v1): the handler gets its output as `body`; what does not fit is
 * 422.
 *
 * @example
 * post('/api/orders', needs(scope('write:orders')), json(Order), ({ body }) => orders.add(body))
 */
export function json<Output>(schema: Schema<Output>, options?: BodyTakenOptions): BodyTaken<Output>;

export function json(...given: readonly [schema?: Schema, options?: BodyTakenOptions]): BodyTaken<unknown> {
  const [schema = ANYTHING, options = {}] = given;
  const { limitBytes, types = ['application/json'], ...others } = options;
  // A schema that is missing where one was written is none.
  const written = given.length === 1 ? given[0] : schema;
  const fault = schemaFault(written) ?? optionsFault(limitBytes, types, others);
  return { takes: 'body', fault, limitBytes, types, judge: (body) => judge(schema, body, 'body-refused') };
}

function optionsFault(limitBytes = 1, types: unknown, others: object) {
  if (Object.keys(others).length > 0) return 'json has no other options than limitBytes and types';
  if (!Number.isInteger(limitBytes) || limitBytes < 1 || limitBytes > MAX_LIMIT_BYTES) {
    return `limitBytes must be a whole number from 1 to ${MAX_LIMIT_BYTES}`;
  }

  const areTypes = isListOf(MEDIA_TYPE, types);
  return areTypes ? undefined : 'types must be a list of media types in lower case, without parameters';
}

function valuesOf(query: URLSearchParams) {
  const values: Record<string, string | string[]> = Object.create(null);
  for (const [name, text] of query) {
    const earlier = values[name];
    if (earlier === undefined) values[name] = text;
    else if (typeof earlier === 'string') values[name] = [earlier, text];
    else earlier.push(text);
  }
  return values;
}
