// A route's query and body, each checked by a schema, or a body as bytes. Promises: a handler gets only the
// schema's output, or bytes, whose content is not checked. Does not choose the moment: the pipeline checks
// after access.
import { isListOf } from '../../verify/base/encoding.ts';
import { integer, readPlainOptions, type RulesOf } from '../../verify/base/option.ts';
import { readBody, readJson, type BodySource } from './body.ts';
import { checkBySchema, requireSchema, type Schema } from './schema.ts';

/** How a route reads its query. Made by `query`. */
export interface QueryInput<Output> {
  readonly input: 'query';
  readonly schema: Schema<Output>;
  readonly check: (given: URLSearchParams) => Output | Promise<Output>;
}

/** How a route reads its body. Made by `json` or `bytes`. */
export interface BodyInput<Output> {
  readonly input: 'body';
  /** Of a JSON body that has one. */
  readonly schema?: Schema | undefined;
  readonly limitBytes: number | undefined;
  /** Empty for any. */
  readonly types: readonly string[];
  readonly read: (source: BodySource, types: readonly string[], limitBytes: number) => Promise<unknown>;
  readonly check: (body: unknown) => Output | Promise<Output>;
}

/** A body's limits. */
export interface BodyOptions {
  /** 1 to 16,777,216. Default: the option `bodyLimitBytes`, which `BODY_LIMIT_BYTES` sets. */
  readonly limitBytes?: number | undefined;
  /** Media types accepted instead of `application/json` or, for `bytes`, of any. */
  readonly types?: readonly [string, ...string[]] | undefined;
}

const MAX_LIMIT_BYTES = 16_777_216;

/** RFC 9110 §8.3.1. Stricter: no `*`, since `image/*` would accept no image. */
const MEDIA_TYPE = /^[!#$%&'+.^_`|~0-9a-z-]+\/[!#$%&'+.^_`|~0-9a-z-]+$/;

const RULES: RulesOf<BodyOptions> = {
  limitBytes: integer(1, MAX_LIMIT_BYTES),
  types: (value) =>
    isListOf(MEDIA_TYPE, value)
      ? undefined
      : 'must be a list of media types in lower case, without parameters',
};

const ANYTHING: Schema = { '~standard': { version: 1, validate: (value) => ({ value }) } };

/**
 * Checks the query against a Standard Schema (version 1), whose output is the handler's `query`. The schema
 * gets an object without prototype: text for each name, an array for a repeated one. A query that does not
 * match is 400 `invalid_query`. Throws a `TypeError` for anything but a schema.
 *
 * @example get('/api/orders', authenticated, query(Page), ({ query }) => orders.list(query.after))
 */
export function query<Output>(schema: Schema<Output>): QueryInput<Output> {
  requireSchema(schema);
  return {
    input: 'query',
    schema,
    check: (given: URLSearchParams) => checkBySchema(schema, valuesOf(given), 'query-refused'),
  };
}

/**
 * Accepts a JSON body (RFC 8259), read once access is granted; the handler's `body` is its value. Throws a
 * `TypeError` for an option that is wrong.
 *
 * @example
 * post('/api/orders', needs(scope('write:orders')), json(), ({ body }) => orders.add(check(body)))
 */
export function json(schema?: undefined, options?: BodyOptions): BodyInput<unknown>;

/**
 * The same, checked by a Standard Schema (version 1), whose output is the handler's `body`. A body that does
 * not match is 422 `unprocessable_content`. Throws a `TypeError` for anything but a schema, too.
 *
 * @example
 * post('/api/orders', needs(scope('write:orders')), json(Order), ({ body }) => orders.add(body))
 */
export function json<Output>(schema: Schema<Output>, options?: BodyOptions): BodyInput<Output>;

export function json(...given: readonly [schema?: Schema, options?: BodyOptions]): BodyInput<unknown> {
  const [schema = ANYTHING, options = {}] = given;
  // `json(undefined)` misses the schema that was meant.
  requireSchema(given.length === 1 ? given[0] : schema);
  const { limitBytes, types = ['application/json'] } = readBodyOptions('json', options);
  return {
    input: 'body',
    schema: given[0],
    limitBytes,
    types,
    read: readJson,
    check: (body) => checkBySchema(schema, body, 'body-refused'),
  };
}

/** In newer types, Fetch and Web Crypto refuse bytes that may be in a `SharedArrayBuffer`. */
type Bytes = Uint8Array & { readonly buffer: ArrayBuffer };

/**
 * Accepts a body as bytes, such as an upload, or a webhook whose signature covers the bytes. It is read once
 * access is granted; the handler's `body` is a `Uint8Array` that no other code holds. Without `types`, any
 * media type is accepted, or none. Throws a `TypeError` for an option that is wrong.
 *
 * @example
 * post('/hooks/payments', open, bytes({ limitBytes: 65_536 }), ({ body }) => verifyHook(body))
 */
export function bytes(options: BodyOptions = {}): BodyInput<Bytes> {
  const { limitBytes, types = [] } = readBodyOptions('bytes', options);
  return { input: 'body', limitBytes, types, read: readBody, check: copy };
}

/** Small buffers of Node share their memory. */
const copy = (body: unknown) => new Uint8Array(Object(body));

/** A copy. Throws a `TypeError`, which names the `owner`. */
const readBodyOptions = (owner: string, options: BodyOptions): BodyOptions =>
  readPlainOptions(options, RULES, {}, owner);

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
