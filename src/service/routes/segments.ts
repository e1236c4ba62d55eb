// Path → decoded segments. The same reading decides route and access. Promises: one canonical form, or none.
import { undefinedOn } from '../../verify/base/encoding.ts';

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
