// Request target → path → decoded segments. The same reading decides route and access. Never parses the
// target as a URL (`//host/x` would change the host). Promises: one canonical form, or none.
import { undefinedOn } from '../verify/base/encoding.ts';
import { refuse, type Refused } from '../verify/base/refusal.ts';

/** The path of an origin-form target (RFC 9112 §3.2.1), without its query; refuses any other form. */
export function targetPath(target: string): string | Refused {
  // Stricter: RFC 9112 §3.2.2 has servers accept the absolute form.
  if (target[0] !== '/') return refuse('target-refused');

  const end = target.indexOf('?');
  return end < 0 ? target : target.slice(0, end);
}

/** Stricter: RFC 3986 §3.3 has no limit. 8,000 segments fit, at the cost of twenty requests. */
const MAX_SEGMENTS = 100;

/**
 * The percent-decoded segments, none for `/`; an encoded slash stays inside its segment. `undefined` for an
 * escape that is broken or not UTF-8 (RFC 3986 §2.1), an empty segment (trailing slash, `//`), a dot segment
 * (§3.3), or more than 100.
 */
export function pathSegments(path: string): readonly string[] | undefined {
  if (path === '/') return [];

  const escaped = path.slice(1).split('/', MAX_SEGMENTS + 1);
  if (escaped.length > MAX_SEGMENTS) return undefined;

  const segments = undefinedOn(URIError, () => escaped.map(decodeURIComponent));
  const isRefused = (segment: string) => segment === '' || segment === '.' || segment === '..';
  return segments?.some(isRefused) ? undefined : segments;
}
