// What a gate reads of any server's request, and what it always refuses, because the server could read it
// differently. Reads no body.
import { refuse } from '../../verify/base/refusal.ts';
import type { RawRequest } from '../record.ts';

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
