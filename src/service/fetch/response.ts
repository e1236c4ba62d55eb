// A Fetch `Response` that a handler returns → the reply to send. Trusts its form, not its class: test runners
// and polyfills have their own. Promises: no field frames the message or is for one hop, and no other code
// reads the body. Does not read it: stream.ts does.
import type { Reply } from '../../gate/replies/reply.ts';
import { isJsonObject } from '../../verify/base/encoding.ts';
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
export function replyToResponse({ status, headers, body, bodyUsed }: FetchResponse): ResponseReply {
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

  const isKept = (name: string) => !OF_ONE_HOP.test(name) && !named.includes(name);
  const kept = [...given].filter(([name]) => isKept(name));
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
