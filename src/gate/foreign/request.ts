// What a gate reads of any server's request, and what it always refuses, because the server could read it
// differently. Reads no body.
import { refuse } from '../../verify/base/refusal.ts';
import type { RawRequest } from '../../verify/request/facts.ts';
import { hasDotSegments } from '../../verify/request/path.ts';

/** Node's own requests fit. `rawHeaders` is as the client sent it. */
export interface GateRequest extends RawRequest {
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

/** Fetch has joined repeated fields with commas. Ignores the URL's scheme. */
export function requestOf(request: GateRequest | FetchRequest): GateRequest {
  if (isOfNode(request)) return request;

  const { method, url, headers }: FetchRequest = Object(request);
  const isWeb = /^https?:/i.test(url) && URL.canParse(url);
  const isWhole = isWeb && typeof method === 'string' && Object(headers)[Symbol.iterator] !== undefined;
  if (!isWhole) throw new TypeError(NO_REQUEST);

  const { host, pathname, search } = new URL(url);
  const fields = [...headers].filter(([name]) => name.toLowerCase() !== 'host');
  return { method, url: pathname + search, rawHeaders: ['Host', host, ...fields.flat()] };
}

const isOfNode = (request: GateRequest | FetchRequest): request is GateRequest =>
  Array.isArray(Object(request).rawHeaders);

/** Node's default limit. */
const NODE_MAX_FIELDS = 1_000;

/** What this side and the server could read differently. */
export function refuseForm(given: GateRequest | FetchRequest, request: GateRequest) {
  const { url = '', originalUrl = url } = given;
  const { rawHeaders } = request;
  // RFC 9113 §8.3.1: in HTTP/2 `:authority` and Host can disagree.
  const isOfHttp2 = rawHeaders.some((name, index) => index % 2 === 0 && name.startsWith(':'));
  if (isOfHttp2) return refuse('host-refused');

  if (hasDotSegments(originalUrl)) return refuse('target-refused');
  return mayLackFields(request) ? refuse('header_fields_too_large') : undefined;
}

/** Node silently drops fields over its limit, perhaps a second Authorization. */
function mayLackFields({ rawHeaders, socket }: GateRequest) {
  const maxFields = Object(socket).server?.maxHeadersCount ?? NODE_MAX_FIELDS;
  return maxFields !== 0 && rawHeaders.length >= maxFields * 2;
}
