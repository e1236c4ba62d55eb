// A route's inputs besides its path: a query and a body, each checked by a schema. Promises: a handler gets
// nothing but the schema's output. Does not decide when: the pipeline does, after access.
import { isListOf } from '../../verify/base/encoding.ts';
import { checkBySchema, schemaProblem, type Schema } from './schema.ts';

/** A route's query; `check` throws `Refused`, or rejects with it. */
export interface QueryInput<Output> {
  readonly input: 'query';
  /** What stops the start. */
  readonly problem: string | undefined;
  readonly check: (given: URLSearchParams) => Output | Promise<Output>;
}

/** A route's JSON body; `check` throws as that of a query does. */
export interface BodyInput<Output> {
  readonly input: 'body';
  /** What stops the start. */
  readonly problem: string | undefined;
  readonly limitBytes: number | undefined;
  readonly types: readonly string[];
  readonly check: (body: unknown) => Output | Promise<Output>;
}

/** A body's limits. */
export interface BodyOptions {
  /** 1 to 16,777,216; the default is the setting `BODY_LIMIT_BYTES`. */
  readonly limitBytes?: number;
  /** Media types accepted instead of `application/json`. */
  readonly types?: readonly [string, ...string[]];
}

const MAX_LIMIT_BYTES = 16_777_216;

/** RFC 9110 §8.3.1: type and subtype, in lower case. */
const MEDIA_TYPE = /^[!#$%&'*+.^_`|~0-9a-z-]+\/[!#$%&'*+.^_`|~0-9a-z-]+$/;

const ANYTHING: Schema = { '~standard': { version: 1, validate: (value) => ({ value }) } };

/**
 * The route accepts a query that fits the schema (Standard Schema v1); its output is the handler's `query`.
 * The schema gets an object without prototype: text for a name that occurs once, an array for a repeated one.
 * Any other query is 400 `invalid_query`. Anything but a schema stops the start.
 *
 * @example get('/api/orders', authenticated, query(Page), ({ query }) => orders.list(query.after))
 */
export function query<Output>(schema: Schema<Output>): QueryInput<Output> {
  return {
    input: 'query',
    problem: schemaProblem(schema),
    check: (given: URLSearchParams) => checkBySchema(schema, valuesOf(given), 'query-refused'),
  };
}

/**
 * The route accepts a JSON body (RFC 8259), read once access is granted. Without a schema the handler's
 * `body` is the JSON value. An invalid schema, limit or media type stops the start.
 *
 * @example
 * post('/api/orders', needs(scope('write:orders')), json(Order), ({ body }) => orders.add(body))
 */
export function json(schema?: undefined, options?: BodyOptions): BodyInput<unknown>;

/**
 * The same with a schema (Standard Schema v1): its output is the handler's `body`; what does not fit is 422.
 *
 * @example
 * post('/api/orders', needs(scope('write:orders')), json(Order), ({ body }) => orders.add(body))
 */
export function json<Output>(schema: Schema<Output>, options?: BodyOptions): BodyInput<Output>;

export function json(...given: readonly [schema?: Schema, options?: BodyOptions]): BodyInput<unknown> {
  const [schema = ANYTHING, options = {}] = given;
  const { limitBytes, types = ['application/json'], ...others } = options;
  // `json(undefined)`: a schema that was meant is missing.
  const written = given.length === 1 ? given[0] : schema;
  const problem = schemaProblem(written) ?? optionsProblem(limitBytes, types, others);
  return {
    input: 'body',
    problem,
    limitBytes,
    types,
    check: (body) => checkBySchema(schema, body, 'body-refused'),
  };
}

function optionsProblem(limitBytes = 1, types: unknown, others: object) {
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
