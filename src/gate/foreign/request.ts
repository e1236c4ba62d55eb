// What a gate reads of any server's request, and what it always refuses, because the server could read it
// differently. Reads no body.
import { refuse, Refused } from '../../verify/base/refusal.ts';
import { isAmended, readHost } from '../../verify/request/facts.ts';
import type { FetchRequest, GateRequest } from './verdict.ts';

const NO_REQUEST = 'a request needs rawHeaders; a Fetch Request needs a method, an http(s) URL and headers';

const NO_RAW_HEADERS =
  'the rawHeaders of the request are empty, although it has headers; pass the gate a Fetch Request instead';

/** What a gate reads of a request. */
export interface ReadRequest extends GateRequest {
  /** Why its URL cannot be one of a request. */
  readonly refused?: Refused | undefined;
}

/** Throws a `TypeError` for what is no request, never for what a client sent. */
export function requestOf(request: GateRequest | FetchRequest): ReadRequest {
  if (!isOfNode(request)) return requestOfFetch(request);

  // Some serverless adapters leave `rawHeaders` empty: every field would be overlooked. Node makes `headers`
  // when it is read.
  if (request.rawHeaders.length > 0) return request;
  if (Object.keys(Object(request.headers)).length > 0) throw new TypeError(NO_RAW_HEADERS);
  return request;
}

const isOfNode = (request: GateRequest | FetchRequest): request is GateRequest =>
  Array.isArray(Object(request).rawHeaders);

/** An http(s) URL as some servers build it from Host and target, not normalized. */
const URL_AS_SENT = /^https?:\/\/([^/?]*)(.*)/i;

/** Ignores the scheme. */
function requestOfFetch(request: FetchRequest): ReadRequest {
  const { method, url, headers }: FetchRequest = Object(request);
  const isIterable = Object(headers)[Symbol.iterator] !== undefined;
  if (typeof method !== 'string' || typeof url !== 'string' || !isIterable) throw new TypeError(NO_REQUEST);

  // Read as text: for `new URL`, a backslash or `#` ends the authority, and white space is nothing.
  const [asSent, authority = '', target = ''] = URL_AS_SENT.exec(url) ?? [];
  const fields = fieldsOf(headers);
  const refused = refuseUrl(url, authority, fields.get('host'));
  fields.set('host', [authority]);

  const rawHeaders: string[] = [];
  for (const [name, values] of fields) {
    for (const value of values) rawHeaders.push(name, value);
  }
  // RFC 9110 §4.2.3: an empty path is `/`. What is no http(s) URL has none. Stricter: an empty path before a
  // query is refused, since Hono takes the first slash of the query for the beginning of the path.
  return { method, url: asSent && (target || '/'), rawHeaders, refused };
}

function refuseUrl(url: string, authority: string, hosts: readonly string[] = []) {
  // RFC 9112 §3.2: Bun makes the URL from the first of two Host fields, Deno and Nitro from one that is none.
  for (const asked of [authority, hosts.join() || authority]) {
    const host = readHost(['host', asked]);
    if (host instanceof Refused) return host;
  }

  // RFC 9112 §3.2: in no request target. Stricter: nor in a query, where `new URL` keeps a backslash.
  return /[\\\s]/.test(url) ? refuse('target-refused') : undefined;
}

/** Names in lower case → values. In Headers, a name has one value, which joins all with commas. */
function fieldsOf(headers: FetchRequest['headers']) {
  // Read below even if the iterator has none of them.
  const fields = new Map<string, string[]>([
    ['authorization', []],
    ['dpop', []],
  ]);
  for (const [field, value] of headers) {
    const name = field.toLowerCase();
    fields.set(name, [...(fields.get(name) ?? []), value]);
  }

  const { get } = Object(headers);
  if (typeof get !== 'function') return fields;

  for (const [name, shown] of fields) {
    // Deno's iterator drops an empty first value, `get` does not.
    const joined: unknown = Reflect.apply(get, headers, [name]);
    if (shown.length < 2 && typeof joined === 'string') fields.set(name, [joined]);
  }
  return fields;
}

/** Node's default limit. */
const NODE_MAX_FIELDS = 1_000;

/** What this side and the server could read differently. */
export function refuseForm(request: GateRequest) {
  const { url = '', originalUrl = url, rawHeaders, socket } = request;
  // RFC 9113 §8.3.1: in HTTP/2 `:authority` and Host can disagree.
  const isOfHttp2 = rawHeaders.some((name, index) => index % 2 === 0 && name.startsWith(':'));
  if (isOfHttp2) return refuse('host-refused');

  if (isAmended(originalUrl)) return refuse('target-refused');

  // Node silently drops fields over its limit, perhaps a second Authorization.
  const maxFields = Object(socket).server?.maxHeadersCount ?? NODE_MAX_FIELDS;
  const mayLackFields = maxFields !== 0 && rawHeaders.length >= maxFields * 2;
  return mayLackFields ? refuse('header_fields_too_large') : undefined;
}
