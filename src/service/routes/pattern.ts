// Patterns of paths: literals and `{parameters}`. Promises: what is no pattern or prefix, or overlaps
// another, is told with what to write instead. Does not find the route of a request: router.ts does.
import { pathSegments } from '../../gate/path.ts';

/**
 * Braces hold a whole segment, and a name occurs once: `PathParameters` would promise more. What other
 * routers would take for any text, or for a query, would here be a text that no path has.
 */
const PATTERN = /^(?!.*(\{\w+\}).*\1)(?:\/(?!:)(?:[^{}/*<>?#[\]]*|\{\w+\}))+$/;

/** The segments of a pattern: of each the text that it is, or the name of its parameter. */
export function parsePattern(pattern: string) {
  if (!PATTERN.test(pattern)) return undefined;

  // A brace that is written as an escape is text.
  const written = pattern.split('/');
  return pathSegments(pattern)?.map((literal, index) => {
    const isParameter = written[index + 1]?.startsWith('{');
    return isParameter ? { name: literal.slice(1, -1) } : { literal };
  });
}

export type Segments = NonNullable<ReturnType<typeof parsePattern>>;

/** Whether a path of these segments matches a pattern of those. */
export const isMatch = (segments: Segments, texts: readonly string[]) =>
  segments.length === texts.length &&
  segments.every(({ literal }, at) => literal === undefined || literal === texts[at]);

/** Of a path that other routers would take, with slashes too few or too many: how it is written here. */
const mended = (path: string) =>
  `/${path}`
    .replace(/\/(?::(\w+)|<(?:\w+:)?(\w+)>|\[(\w+)\])(?=\/|$)/g, '/{$1$2$3}')
    .replace(/\/{2,}/g, '/')
    .replace(/(.)\/$/, '$1');

/** What other routers would take for any text is here a text that no path has. */
const isPrefix = (path: string) => pathSegments(path) !== undefined && !/^[^/]|[*{}<>?#[\]]|\/:/.test(path);

/** What is wrong with the prefix of a rule, if anything is. */
export function prefixFaults(prefix: string) {
  if (isPrefix(prefix)) return [];

  // A rule covers what a wildcard or a parameter would stand for.
  const meant = mended(prefix).replace(/\/(\*+|\{\w+\})(\/.*)?$/, '') || '/';
  const fix = isPrefix(meant) ? meant : 'one such as /api/admin';
  return [`is no prefix of paths, without wildcards and parameters; write ${fix}`];
}

/** By what no pattern can have, what to write instead. */
const FIXES: readonly (readonly [RegExp, string])[] = [
  [/\*|\.\.\./, 'a route for each path, without wildcard, and {name} for a segment that varies'],
  [/[?#]/, 'the path alone: a query is for query(), what is optional for a second route'],
  [/[:<>[\]{}]/, 'a parameter as {name}, which is a whole segment, and each name once'],
  [/^/, 'at most a hundred segments, without dot segments and broken escapes'],
];

/** What is wrong with what is no pattern. */
export function patternFault(pattern: string) {
  if (typeof pattern !== 'string') return 'is not a path pattern; write a text such as /orders/{id}';

  const meant = mended(pattern);
  const [, other] = FIXES.find(([sign]) => sign.test(pattern)) ?? [];
  return `is not a path pattern; write ${parsePattern(meant) ? meant : other}`;
}

type Parsed = Readonly<{ pattern: string; segments: Segments | undefined }>;

/** A path that both patterns match, and ways out; nothing when there is none. */
export function overlapFault(one: Parsed, other: Parsed) {
  if (one.segments === undefined || other.segments === undefined) return undefined;

  const common = commonPath(one.segments, other.segments);
  if (common === undefined) return undefined;

  const found = `${one.pattern} and ${other.pattern}: both match ${common}; give one of them another path`;
  const isWide = isCovering(one.segments, other.segments);
  if (isWide === isCovering(other.segments, one.segments)) return found;

  const [wide, narrow] = isWide ? [one, other] : [other, one];
  return `${found}, or answer for ${narrow.pattern} in the handler of ${wide.pattern}`;
}

/** Whether every path that the second pattern matches, of as many segments, matches the first. */
const isCovering = (wide: Segments, narrow: Segments) =>
  wide.every(({ literal }, at) => literal === undefined || literal === narrow[at]?.literal);

/** A path that both patterns match, if there is one. */
function commonPath(one: Segments, other: Segments) {
  // Where one of them has a literal, only that can be common; where both have a parameter, any text is.
  const path = one.map(({ literal }, index) => literal ?? other[index]?.literal ?? 'x');
  return isMatch(other, path) ? `/${path.map(encodeURIComponent).join('/')}` : undefined;
}
