// What a handler may give beside plain JSON: a reply with a status and header fields of its own. Promises:
// nothing in it decides how the connection is used, who is asked for credentials, or what a browser keeps.
import { UsageError } from '../../verify/base/events.ts';
import { jsonReply, jsonText, type Reply } from '../../gate/reply.ts';

/**
 * A reply of a handler's own, made by `reply`, `created`, `noContent` and `fail`. Only a failure may be
 * thrown too.
 */
export class HandlerReply {
  readonly #isGenuine = true;
  readonly reply;
  readonly isThrowable;

  constructor(reply: Reply, isThrowable = false) {
    this.reply = reply;
    this.isThrowable = isThrowable;
  }

  /** For what was thrown: it may be a revoked proxy, of which `instanceof` throws. */
  static isGenuine(thrown: unknown): thrown is HandlerReply {
    return typeof thrown === 'object' && thrown !== null && #isGenuine in thrown;
  }

  /** As a part of JSON, or for another copy of this package, it would be told with 200. */
  toJSON(): never {
    throw new UsageError('a reply inside of a body, or of another copy of this package');
  }
}

/** Header fields by name. */
export type Headers = Readonly<Record<string, string>>;

/**
 * RFC 9110 §7.6.1, §8.6, §11.6.1, RFC 9112 §6, §9.3: framing, the connection and credentials are the
 * service's.
 */
const REFUSED_FIELDS =
  /^(connection|content-length|keep-alive|(proxy|www)-.*|set-cookie|te|trailer|transfer-encoding|upgrade)$/i;

/** RFC 9110 §5.6.2, §5.5 */
const NAME = /^[!#$%&'*+.^_`|~\w-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * A reply with this status (200 to 599), a JSON body or bytes, and header fields. Bytes need a
 * `Content-Type`; a given `Cache-Control` replaces `no-store`. Throws a `TypeError` for what cannot be sent,
 * and for fields that are not a handler's.
 *
 * @example reply(202, { id }, { Location: `/api/jobs/${id}` })
 */
export function reply(status: number, body?: object, headers?: Headers): HandlerReply {
  return new HandlerReply(makeReply(status, body, headers));
}

/**
 * 201 with the place of what was made (RFC 9110 §15.3.2). Throws as `reply` does.
 *
 * @example created(`/api/orders/${order.id}`, order)
 */
export const created = (location: string, body?: object) => reply(201, body, { Location: location });

/**
 * 204 (RFC 9110 §15.3.5).
 *
 * @example del('/api/orders/{id}', authenticated, () => noContent())
 */
export const noContent = () => reply(204);

/**
 * A failure that the client shall know of, given or thrown: 400 to 599, with the body `{error, message}`.
 * Throws a `TypeError` for another status.
 *
 * @example orders.get(parameters.id) ?? fail(404, 'not_found', 'There is no such order')
 */
export function fail(status: number, error: string, message: string): HandlerReply {
  if (status < 400) throw new UsageError('a failure needs a status from 400 to 599');

  return new HandlerReply(makeReply(status, { error, message }), true);
}

function makeReply(status: number, body?: object, headers?: Headers) {
  checkStatus(status, body !== undefined);
  const isJson = body !== undefined && !(body instanceof Uint8Array);
  const content = isJson ? jsonText(body) : (body ?? '');
  const fields = fieldsOf(isJson, headers);
  if (body !== undefined && !fields.has('content-type')) throw new UsageError('bytes need a Content-Type');

  // RFC 9110 §8.6
  if (status !== 204 && status !== 304) fields.set('content-length', String(Buffer.byteLength(content)));
  return { status, fields: [...fields].flat(), content };
}

function checkStatus(status: number, hasBody: boolean) {
  const isStatus = Number.isInteger(status) && status >= 200 && status < 600;
  if (!isStatus) throw new UsageError('a reply needs a status from 200 to 599');

  // RFC 9110 §15.3.5, §15.3.6, §15.4.5
  const isTooMuch = hasBody && [204, 205, 304].includes(status);
  if (isTooMuch) throw new UsageError(`a reply with ${status} has no body`);
}

/** What the handler says of the body, and what is said where it says nothing. */
function fieldsOf(isJson: boolean, headers: Headers = {}) {
  const fields = new Map([['cache-control', 'no-store']]);
  if (isJson) fields.set('content-type', 'application/json; charset=utf-8');

  // Of a `Headers` or a `Map` no member shows.
  if (Symbol.iterator in headers) throw new UsageError('header fields are members of an object');

  for (const [name, value] of Object.entries(headers)) {
    if (REFUSED_FIELDS.test(name)) throw new UsageError(`${name} is not for a handler to set`);
    // Node looks at them only when they are written, and then nobody could answer 500 any more.
    if (!NAME.test(name) || typeof value !== 'string' || !VALUE.test(value)) {
      throw new UsageError('a header field that cannot be sent');
    }
    fields.set(name.toLowerCase(), value);
  }
  return fields.set('x-content-type-options', 'nosniff');
}

/**
 * The reply to what a handler gave: a reply of its own, 204 for nothing, 200 for a JSON object or array.
 * Throws a `TypeError` for all else.
 */
export function replyToResult(result: unknown, method: string): Reply {
  if (result instanceof HandlerReply) {
    // So that one given goes the way of one thrown.
    if (result.isThrowable) throw result;
    return result.reply;
  }
  if (result === undefined && method !== 'GET') return noContent().reply;

  return jsonReply(200, result);
}
