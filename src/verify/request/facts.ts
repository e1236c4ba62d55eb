// What a request says of itself before anything is checked: method, host, path and header fields.
import { Refused } from '../base/refusal.ts';
import { readHost } from './fields.ts';
import { originPath } from './path.ts';

export interface RawRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  /** What the client sent, where a framework rewrites `url`. */
  readonly originalUrl?: string | undefined;
  readonly rawHeaders: readonly string[];
  readonly httpVersion?: string | undefined;
  readonly socket?: unknown;
}

/** HTTP/1.0 may have no `host`. `path` is not decoded. */
export interface RequestFacts {
  readonly method: string;
  readonly host: string | undefined;
  readonly path: string;
  readonly rawHeaders: readonly string[];
  /** Whose peer and certificate a part may ask for. A Fetch `Request` has none. */
  readonly socket?: unknown;
  /** The URI that a proxy asks about, used in place of `host`. */
  readonly uri?: () => string | Refused;
}

export function readFacts(request: RawRequest): RequestFacts | Refused {
  const { method = '', url = '', originalUrl = url, rawHeaders, httpVersion, socket } = request;
  const host = readHost(rawHeaders, httpVersion);
  if (host instanceof Refused) return host;

  const path = originPath(originalUrl);
  return path instanceof Refused ? path : { method, host, path, rawHeaders, socket };
}
