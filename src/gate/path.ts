// Request target → path → decoded segments: one reading decides both the route and its access. Never parses
// the target as a URL (`//host/x` would change the host). Promises: one canonical form, or none.
import { undefinedOn } from '../verify/base/encoding.ts';
import { refuse, type Refused } from '../verify/base/refusal.ts';

/**
 * The path of an origin-form target (RFC 9112 §3.2.1) without its query; any other form is
 * refused.
 */
export function targetPath(target: string): string | Refused {
  // Stricter: RFC 9112 §3.2.2 would have us read the absolute form too.
  if (target[0] !== '/') return refuse('target-refused');

  const end = target.indexOf('?');
  return end < 0 ? target : target.slice(0, end);
}

/**
 * Stricter: RFC 3986 §3.3 sets no bound. The 8,000 segments for which a request line has room take the time
 * of twenty requests.
 */
const MAX_SEGMENTS = 100;

/**
 * The percent-decoded segments of a path, none of `/`; `undefined` when an escape is broken or not UTF-8
 * (RFC 3986 §2.1), a segment is empty (trailing slash, `//`) or a dot segment (§3.3), or there are more
 * than a hundred. An encoded slash stays inside its segment.
 */
export function pathSegments(path: string): readonly string[] | undefined {
  if (path === '/') return [];

  const escaped = path.slice(1).split('/', MAX_SEGMENTS + 1);
  if (escaped.length > MAX_SEGMENTS) return undefined;

  const segments = undefinedOn(URIError, () => escaped.map(decodeURIComponent));
  const isRefused = (segment: string) => segment === '' || segment === '.' || segment === '..';
  return segments?.some(isRefused) ? undefined : segments;
}

const METADATA_ROOT = '/.well-known/oauth-protected-resource';

/**
 * Where clients look for the metadata of a resource: first the path of RFC 9728 §3.1. Choice: clients that
 * keep a slash at the end of their URL find it too, and those that know but a part of the API, at the root.
 */
export function metadataPaths(resourceUrl: string): readonly [first: string, ...others: string[]] {
  const first = METADATA_ROOT + new URL(resourceUrl).pathname.replace(/^\/$/, '');
  return [first, `${first}/`, METADATA_ROOT];
}
