// What a handler has returned → the reply to send. Promises: only what is meant as JSON is sent as JSON.
import type { RequestRecord } from '../../gate/record.ts';
import { jsonReply, NO_CONTENT, pairsOf, type Field, type Reply } from '../../gate/replies/reply.ts';
import { isError, isJsonObject, isPlain } from '../../verify/base/encoding.ts';
import { UsageError } from '../../verify/base/events.ts';
import { isResponse, replyToResponse } from '../fetch/response.ts';

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
export function replyToResult(result: unknown, method: string, hasCors = false): Reply {
  if (result instanceof HandlerReply) {
    if (result.turnedAway) throw result;
    return ownReply(result.reply, hasCors);
  }
  if (result === undefined && method !== 'GET') return NO_CONTENT;
  if (result === undefined) throw new UsageError(NO_RESULT);

  const json = jsonOf(result);
  if (json !== undefined) return jsonReply(200, json);
  if (isResponse(result)) return ownReply(replyToResponse(result), hasCors);
  throw new UsageError(NO_JSON);
}

/**
 * With `hasCors`, the service alone says which origins may read it: a handler that says so too would add a
 * second field, which browsers refuse.
 */
function ownReply(reply: Reply, hasCors: boolean): Reply {
  if (!hasCors) return reply;

  const isKept = ([name]: Field) => !name.startsWith('access-control-');
  return { ...reply, fields: pairsOf(reply.fields).filter(isKept).flat() };
}

/**
 * The JSON of a plain object, an array, or a class instance with members. Throws a `TypeError` for anything
 * else, such as a `Map`. Checks the outermost value only.
 */
export function jsonText(body: unknown): string {
  const text = jsonOf(body);
  if (text === undefined) throw new UsageError(NO_JSON);

  return text;
}

function jsonOf(body: unknown) {
  const text = isSerializable(body) ? JSON.stringify(body) : '';
  return text?.[0] === '{' || text?.[0] === '[' ? text : undefined;
}

function isSerializable(body: unknown) {
  if (!isJsonObject(body)) return Array.isArray(body);
  // JSON would leak an error or list single bytes.
  if (isError(body) || ArrayBuffer.isView(body) || isResponse(body)) return false;

  const { toJSON, then, pipe } = body;
  if (typeof toJSON === 'function') return true;

  // Members of a promise, stream or collection are not its content.
  const isSource = typeof then === 'function' || typeof pipe === 'function';
  if (isSource || Symbol.iterator in body || Symbol.asyncIterator in body) return false;

  return isPlain(body) || Object.keys(body).length > 0;
}
