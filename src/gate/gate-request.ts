// What a gate reads of any server's request, and what it always refuses, because the server could read it
// differently. Reads no body.
import { refuse, Refused } from '../verify/base/refusal.ts';
import { readHost } from '../verify/request/fields.ts';
import type { RawRequest } from './record.ts';

/** Node's own requests fit. `rawHeaders` is as the client sent it. */
export interface GateRequest extends RawRequest {
  /** Not read, but if `rawHeaders` lacks what is here, the adapter is of no use. */
  readonly headers?: object | undefined;
  readonly socket?: unknown;
}

/** A Fetch `Request`. From its URL, the gate reads only host, path and query. */
export interface FetchRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Iterable<readonly [name: string, value: string]>;
  readonly originalUrl?: undefined;
}

const NO_REQUEST = 'a request needs rawHeaders; a Fetch Request needs a method, an http(s) URL and headers';

const NO_RAW_HEADERS =
  'the rawHeaders of the request are empty, although it has headers; pass the gate a Fetch Request instead';

/**
 * Returns a `Refused` for a URL that cannot be one of a request. Throws a `TypeError` for what is no request,
 * never for what a client sent.
 */
export function requestOf(request: GateRequest | FetchRequest): GateRequest | Refused {
  if (!isOfNode(request)) return requestOfFetch(request);

  // Some serverless adapters leave `rawHeaders` empty: every field would be overlooked.
  const { rawHeaders, headers = {} } = request;
  if (rawHeaders.length === 0 && Object.keys(headers).length > 0) throw new TypeError(NO_RAW_HEADERS);
  return request;
}

const isOfNode = (request: GateRequest | FetchRequest): request is GateRequest =>
  Array.isArray(Object(request).rawHeaders);

/** An http(s) URL as some servers build it from Host and target, not normalized. */
const URL_AS_SENT = /^https?:\/\/([^/?]*)([^#]*)/i;

/** Ignores the scheme. */
function requestOfFetch(request: FetchRequest): GateRequest | Refused {
  const { method, url, headers }: FetchRequest = Object(request);
  const isIterable = Object(headers)[Symbol.iterator] !== undefined;
  if (typeof method !== 'string' || typeof url !== 'string' || !isIterable) throw new TypeError(NO_REQUEST);

  // Read as text: for `new URL`, a backslash or `#` ends the authority, and white space is nothing.
  const [, authority = '', target = ''] = URL_AS_SENT.exec(url) ?? [];
  const host = ['Host', authority];
  const refused = readHost(host);
  if (refused instanceof Refused) return refused;

  // RFC 9112 §3.2: in no request target.
  if (/[\\\s]/.test(url)) return refuse('target-refused');
  return { method, url: target || '/', rawHeaders: [...host, ...fieldsOf(headers)] };
}

/**
 * Fetch joins repeated fields with commas; other iterables may repeat them. Deno's iterator drops an empty
 * first value, `get` does not; so it also tells of a field that is empty.
 */
function fieldsOf(headers: FetchRequest['headers']) {
  const fields = [...headers].filter(([name]) => name.toLowerCase() !== 'host');
  const { get } = Object(headers);
  if (typeof get !== 'function') return fields.flat();

  const names = new Set(['authorization', 'dpop']);
  for (const [name] of fields) names.add(name.toLowerCase());
  return [...names].flatMap((name) => {
    const value: unknown = Reflect.apply(get, headers, [name]);
    return typeof value === 'string' ? [name, value] : [];
  });
}

/** Node's default limit. */
const NODE_MAX_FIELDS = 1_000;

export function refuseAmbiguous(
  { url = '', originalUrl = url }: GateRequest | FetchRequest,
  rawHeaders: readonly string[],
) {
  // RFC 9113 §8.3.1: in HTTP/2 `:authority` and Host can disagree.
  const isOfHttp2 = rawHeaders.some((name, index) => index % 2 === 0 && name.startsWith(':'));
  if (isOfHttp2) return refuse('host-refused');

  // RFC 3986 §5.2.4: a proof covers the path without dot segments. Some servers keep them in a Request's
  // `url`, and route by the part before `#`. URL reads `\` as `/`.
  const [path = ''] = originalUrl.split(/[?#]/, 1);
  const isDot = (segment: string) => /^(?:\.|%2e){1,2}$/i.test(segment);
  return path.split(/[/\\]/).some(isDot) ? refuse('target-refused') : undefined;
}

/** Node silently drops fields over its limit, perhaps a second Authorization. */
export function mayLackFields({ rawHeaders, socket }: GateRequest) {
  const maxFields = Object(socket).server?.maxHeadersCount ?? NODE_MAX_FIELDS;
  return maxFields !== 0 && rawHeaders.length >= maxFields * 2;
}
