// What a handler has returned → the reply to send. Trusts the form of a Fetch `Response`, not its class: test
// runners and polyfills have their own. Promises: only what is meant as JSON is sent as JSON; no field of a
// `Response` frames the message or is for one hop, and no other code reads its body. Does not read it:
// stream.ts does.
import type { RequestRecord } from '../../gate/decide.ts';
import {
  jsonReply,
  NO_CONTENT,
  pairsOf,
  type CrossOrigin,
  type Field,
  type Reply,
} from '../../gate/replies/reply.ts';
import { isError, isJsonObject, isPlain } from '../../verify/base/encoding.ts';
import { UsageError } from '../../verify/base/events.ts';

/** What a `Response` of any class has. */
interface FetchResponse {
  readonly status: number;
  readonly headers: { readonly entries: () => Iterable<readonly [name: string, value: string]> };
  readonly body: FetchBody | null;
  readonly bodyUsed?: boolean;
}

export interface FetchBody {
  readonly locked?: boolean;
  readonly getReader: () => BodyReader;
  readonly cancel: () => unknown;
}

export interface BodyReader {
  readonly read: () => unknown;
  readonly cancel: () => unknown;
}

export interface ResponseReply extends Reply {
  readonly body: FetchBody | null;
  /** By its own Content-Length; NaN without one. */
  readonly lengthBytes: number;
  readonly isEventStream: boolean;
}

export const isResponseReply = (reply: Reply | undefined): reply is ResponseReply =>
  reply !== undefined && 'body' in reply;

/** A list is JSON, although it has `entries`. */
export function isResponse(value: unknown): value is FetchResponse {
  if (!isJsonObject(value)) return false;

  const { status, headers, body }: Partial<FetchResponse> = value;
  if (typeof status !== 'number' || Array.isArray(headers)) return false;

  const isBody = body === null || typeof body?.getReader === 'function';
  return isBody && typeof headers?.entries === 'function';
}

/** RFC 9110 §7.6.1, §11.7, RFC 9112 §6.1: Node frames the message. */
const OF_ONE_HOP =
  /^(?:connection|keep-alive|proxy-(?:auth.*|connection)|te|trailer|transfer-encoding|upgrade)$/;

/** Unless the `Response` has these fields itself. */
const ADDED = [
  ['cache-control', 'no-store'],
  ['x-content-type-options', 'nosniff'],
] as const;

/** RFC 9110 §5.6.2 */
export const FIELD_NAME = /^[!#$%&'*+.^_`|~\w-]+$/;

/** RFC 9110 §5.5 */
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

const NO_STATUS = 'a Response needs a status from 200 to 599';
const NO_FIELD = 'a header field of a Response cannot be sent';
const NO_LENGTH = 'the Content-Length of a Response must be one number';
const USED = 'the body of a Response was used or is locked; return an unread one';

/** Throws a `TypeError` for a `Response` that cannot be sent. */
function replyToResponse({ status, headers, body, bodyUsed }: FetchResponse): ResponseReply {
  if (!Number.isInteger(status) || status < 200 || status > 599) throw new UsageError(NO_STATUS);
  if (bodyUsed || body?.locked) throw new UsageError(USED);

  const cookies: string[] = [];
  const fields = fieldsOf(headers, cookies);
  const lengthBytes = lengthOf(fields);
  // RFC 9110 §8.6, §15.3.6
  if (status === 204) fields.delete('content-length');
  if (status === 205) fields.set('content-length', '0');

  return {
    status,
    fields: [...[...fields].flat(), ...cookies],
    content: '',
    body,
    lengthBytes,
    isEventStream: /^text\/event-stream *(?:;|$)/i.test(fields.get('content-type') ?? ''),
  };
}

function lengthOf(fields: ReadonlyMap<string, string>) {
  const text = fields.get('content-length') ?? 'NaN';
  if (!/^(?:NaN|\d{1,15})$/.test(text)) throw new UsageError(NO_LENGTH);
  return Number(text);
}

/** By name in lower case. */
function fieldsOf(headers: FetchResponse['headers'], cookies: string[]) {
  const given = readFields(headers, cookies);
  // RFC 9110 §7.6.1
  const connection = given.get('connection') ?? '';
  const named = connection.toLowerCase().split(/[\t ,]+/);
  if (named.includes('set-cookie')) cookies.length = 0;

  const ofMessage = [...given].filter(([name]) => !OF_ONE_HOP.test(name));
  const kept = ofMessage.filter(([name]) => !named.includes(name));
  return new Map([...ADDED, ...kept]);
}

/** Each cookie needs a field of its own (RFC 6265 §3). */
function readFields(headers: FetchResponse['headers'], cookies: string[]) {
  const given = new Map<string, string>();
  for (const [field, value] of headers.entries()) {
    const name = field.toLowerCase();
    const isGood = FIELD_NAME.test(name) && typeof value === 'string' && FIELD_VALUE.test(value);
    if (!isGood) throw new UsageError(NO_FIELD);

    const before = given.get(name);
    if (name === 'set-cookie') cookies.push(name, value);
    // RFC 9110 §5.3
    else given.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return given;
}

/** A handler may throw only one that turns the request away, such as made by `fail`. */
export class HandlerReply {
  readonly #isGenuine = true;
  readonly reply;
  /** Why, for the record of the request. */
  readonly turnedAway;

  constructor(reply: Reply, turnedAway?: RequestRecord) {
    this.reply = reply;
    this.turnedAway = turnedAway;
  }

  static isGenuine(thrown: unknown): thrown is HandlerReply {
    return #isGenuine in Object(thrown);
  }

  /** Nested, or from another copy of this package, it would become a 200 body. */
  toJSON(): never {
    throw new UsageError('a body has a reply in it, or another copy of this package made the reply');
  }
}

const NO_RESULT =
  'the handler of a get route returned nothing; return an object, an array or a reply, or fail(404, ...)';

const NO_JSON =
  'a body must be a plain object, an array or an object with properties; convert it, or give reply() bytes';

/**
 * The reply for a handler's result: its own reply, 204 for nothing (except for GET), 200 for a JSON object or
 * array, the reply for a `Response`. Throws a returned `fail` or refusal, and a `TypeError` for the rest.
 */
export function replyToResult(result: unknown, method: string, crossOrigin?: CrossOrigin): Reply {
  if (result instanceof HandlerReply) {
    if (result.turnedAway) throw result;
    return ownReply(result.reply, crossOrigin);
  }
  if (result === undefined && method !== 'GET') return NO_CONTENT;
  if (result === undefined) throw new UsageError(NO_RESULT);

  if (isResponse(result)) return ownReply(replyToResponse(result), crossOrigin);
  return jsonReply(200, jsonText(result));
}

/**
 * With `crossOrigin`, the service alone says which origins may read it: a handler that says so too would add
 * a second field, which browsers refuse.
 */
function ownReply(reply: Reply, crossOrigin?: CrossOrigin): Reply {
  if (!crossOrigin) return reply;

  return { ...reply, fields: pairsOf(reply.fields).filter(isOfHandler).flat() };
}

const isOfHandler = ([name]: Field) => !name.startsWith('access-control-');

/** What V8 and JavaScriptCore throw. What a `toJSON` throws is a bug of its own. */
const HAS_NO_JSON = /^(?:Do not know how to|JSON\.stringify cannot) serialize |^Converting circular /;

/**
 * The JSON of a plain object, an array, or a class instance with members. Throws a `TypeError` for anything
 * else, such as a `Map`. Checks the outermost value only.
 */
export function jsonText(body: unknown): string {
  try {
    const source = Object(body);
    const isMade = typeof source.toJSON === 'function' && isSerializable(body);
    // The outermost value then. JSON never calls a toJSON that it has, such as one that `...this` copied.
    const value = isMade ? source.toJSON('') : body;
    const form = isMade ? { toJSON: () => value } : body;
    const text = isSerializable(value, isMade) ? JSON.stringify(form) : '';
    if (/^[[{]/.test(text)) return text;
  } catch (cause) {
    if (!isOfJson(cause)) throw cause;

    throw new UsageError('a body must not have a BigInt or itself in it; convert it', { cause });
  }
  throw new UsageError(NO_JSON);
}

function isOfJson(error: unknown) {
  try {
    return HAS_NO_JSON.test(Object(error).message);
  } catch {
    // What reads it may throw.
    return false;
  }
}

function isSerializable(body: unknown, isMade = false) {
  if (!isJsonObject(body)) return Array.isArray(body);
  // JSON would leak an error or list single bytes.
  if (isError(body) || ArrayBuffer.isView(body) || isResponse(body)) return false;

  const { toJSON, then, pipe } = body;
  if (typeof toJSON === 'function' && !isMade) return true;

  // Members of a promise, stream or collection are not its content.
  const isSource = typeof then === 'function' || typeof pipe === 'function';
  if (isSource || Symbol.iterator in body || Symbol.asyncIterator in body) return false;

  return isPlain(body) || Object.keys(body).length > 0;
}
