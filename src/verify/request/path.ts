// Which paths are served. Every request has a target in origin form. A service finds its routes by decoded
// segments. A policy refuses what servers read in several ways. A gate refuses dot segments alone: the server
// behind it routes by the path as sent. Never parses a target as a URL: `//host/x` would change the host.
import { catching } from '../base/encoding.ts';
import { refuse, type Refused } from '../base/refusal.ts';

/** All: accepts only the origin form (RFC 9112 §3.2.1), and drops the query. */
export function originPath(target: string): string | Refused {
  // Stricter: RFC 9112 §3.2.2 has servers accept the absolute form.
  if (target[0] !== '/') return refuse('target-refused');

  const end = target.indexOf('?');
  return end < 0 ? target : target.slice(0, end);
}

/**
 * Gate: a proof covers the path without dot segments (RFC 3986 §5.2.4). Some servers keep them in a Request's
 * `url`, and route by the part before `#`. URL reads `\` as `/`.
 */
export function hasDotSegments(target: string): boolean {
  const [path = ''] = target.split(/[?#]/, 1);
  const isDot = (segment: string) => /^(?:\.|%2e){1,2}$/i.test(segment);
  return path.split(/[/\\]/).some(isDot);
}

/**
 * Stricter: RFC 3986 §3.3 sets no limit. A request line can hold 8,000, which would cost as much as twenty
 * requests.
 */
const MAX_SEGMENTS = 100;

/**
 * Service and policy: percent-decoded, none for `/`. An encoded slash stays inside its segment. `undefined`
 * for a broken escape (RFC 3986 §2.1), an empty segment, a dot segment (§3.3), or too many: one canonical
 * form, or none.
 */
export function pathSegments(path: string): readonly string[] | undefined {
  if (path === '/') return [];

  const escaped = path.slice(1).split('/', MAX_SEGMENTS + 1);
  if (escaped.length > MAX_SEGMENTS) return undefined;

  // For speed: most paths have no escape.
  const isPlain = !path.includes('%');
  const segments = isPlain ? escaped : catching('URIError', () => escaped.map(decodeURIComponent));
  const isRefused = (segment: string) => segment === '' || segment === '.' || segment === '..';
  return segments?.some(isRefused) ? undefined : segments;
}

/** Stricter: what servers read in several ways, plain or escaped, and control characters. */
const AMBIGUOUS = /[^!-~]|[#\\;]|%(?:2f|5c|3b|3f|23|25|[01][\da-f]|7f|c2%[89][\da-f])/i;

/** Policy: what a server behind a proxy makes of such a path is not known here. */
export const isAmbiguous = (path: string) => AMBIGUOUS.test(path);
