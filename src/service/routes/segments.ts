// Path → decoded segments, by which both route and rules are found. Promises: one canonical form, or none.
import { undefinedOn } from '../../verify/base/encoding.ts';

/**
 * Stricter: RFC 3986 §3.3 sets no limit. A request line can hold 8,000, which would cost as much as twenty
 * requests.
 */
const MAX_SEGMENTS = 100;

/**
 * Percent-decoded, none for `/`. An encoded slash stays inside its segment. `undefined` for a broken escape
 * (RFC 3986 §2.1), an empty segment, a dot segment (§3.3), or too many.
 */
export function pathSegments(path: string): readonly string[] | undefined {
  if (path === '/') return [];

  const escaped = path.slice(1).split('/', MAX_SEGMENTS + 1);
  if (escaped.length > MAX_SEGMENTS) return undefined;

  const segments = undefinedOn('URIError', () => escaped.map(decodeURIComponent));
  const isRefused = (segment: string) => segment === '' || segment === '.' || segment === '..';
  return segments?.some(isRefused) ? undefined : segments;
}
