// What a handler may return besides plain JSON: a reply with its own status and header fields. Promises: it
// cannot change framing, the connection or challenges, or set a cookie.
import { isBytes } from '../../verify/base/encoding.ts';
import { UsageError } from '../../verify/base/events.ts';
import { FIELD_NAME, HandlerReply, jsonText } from './handler-result.ts';

/** Header fields of a reply, by name. */
export type Headers = Readonly<Record<string, string>>;

/** RFC 9110 §7.6.1, §8.6, §11.6.1, §11.7, RFC 9112 §6, §9.3. The log may show these names, and no others. */
const REFUSED_FIELDS = (
  'connection content-length keep-alive proxy-authenticate proxy-authentication-info proxy-authorization ' +
  'proxy-connection set-cookie te trailer transfer-encoding upgrade www-authenticate'
).split(' ');

const REFUSED = 'must not be set by a reply; a Response may set set-cookie and www-authenticate';

const UNSENDABLE = 'a header field cannot be sent; its name must be a token, and its value printable ASCII';

/** RFC 9110 §5.5. Stricter: only ASCII. */
const VALUE = /^(?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?$/;

/**
 * A reply with a status (200 to 599), a JSON body or bytes, and header fields. Bytes need a `Content-Type`. A
 * `Cache-Control` replaces `no-store`. Throws a `TypeError` for what cannot be sent, and for what a handler
 * may not set.
 *
 * @example reply(202, { id }, { Location: `/api/jobs/${id}` })
 */
export function reply(status: number, body?: object, headers?: Headers): HandlerReply {
  return new HandlerReply(makeReply(status, body, headers));
}

/**
 * 201 with the URL of the new resource (RFC 9110 §15.3.2), in ASCII, and a body as for `reply`. Throws as
 * `reply` does.
 *
 * @example created(`/api/orders/${order.id}`, order)
 */
export const created = (location: string, body?: object) => reply(201, body, { Location: location });

/**
 * 204, without a body (RFC 9110 §15.3.5).
 *
 * @example del('/api/orders/{id}', authenticated, () => noContent())
 */
export const noContent = () => reply(204);

/**
 * An error for the client, to return or throw: 400 to 599, with the body `{error, message}`. Empty ones
 * become `server_error` and `Internal Server Error`. Throws a `TypeError` for another status.
 *
 * @example orders.get(parameters.id) ?? fail(404, 'not_found', 'There is no such order')
 */
export function fail(status: number, error: string, message: string): HandlerReply {
  if (status < 400) throw new UsageError('fail needs a status from 400 to 599');

  const body = { error: error || 'server_error', message: message || 'Internal Server Error' };
  return new HandlerReply(makeReply(status, body), { reason: 'handler' });
}

function makeReply(status: number, body?: object, headers?: Headers) {
  checkStatus(status, body !== undefined);
  const isJson = body !== undefined && !isBytes(body);
  // Copied: a handler may reuse or transfer its bytes before they are written.
  const bytes = isBytes(body) ? Buffer.from(body) : '';
  const content = isJson ? jsonText(body) : bytes;
  const fields = fieldsOf(isJson, headers);
  if (body !== undefined && !fields.get('content-type')) throw new UsageError('bytes need a Content-Type');

  // RFC 9110 §8.6
  if (status !== 204 && status !== 304) fields.set('content-length', String(Buffer.byteLength(content)));
  return { status, fields: [...fields].flat(), content };
}

function checkStatus(status: number, hasBody: boolean) {
  const isStatus = Number.isInteger(status) && status >= 200 && status < 600;
  if (!isStatus) throw new UsageError('a reply needs a status from 200 to 599');

  // RFC 9110 §15.3.5, §15.3.6, §15.4.5
  const isTooMuch = hasBody && [204, 205, 304].includes(status);
  if (isTooMuch) throw new UsageError(`a reply with ${status} must not have a body`);
}

function fieldsOf(isJson: boolean, headers: Headers = {}) {
  const fields = new Map([['cache-control', 'no-store']]);
  if (isJson) fields.set('content-type', 'application/json; charset=utf-8');

  // `Headers` and `Map` have entries, not properties.
  if (Symbol.iterator in headers) throw new UsageError('headers must be a plain object');

  for (const [name, value] of Object.entries(headers)) {
    const lowerName = name.toLowerCase();
    if (REFUSED_FIELDS.includes(lowerName)) throw new UsageError(`${lowerName} ${REFUSED}`);
    // Node would throw on writing, too late for a 500.
    if (!FIELD_NAME.test(name) || typeof value !== 'string' || !VALUE.test(value)) {
      throw new UsageError(UNSENDABLE);
    }
    fields.set(lowerName, value);
  }
  return fields.set('x-content-type-options', 'nosniff');
}
