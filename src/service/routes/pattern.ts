// Path patterns: literals and `{parameters}`. Promises: every problem says what to write instead. Does not
// find a request's route: router.ts does.
import { pathSegments } from '../../verify/request/path.ts';

/**
 * Parameters are whole segments with distinct names. Refuses wildcards and queries, which would be literal
 * text.
 */
const PATTERN = /^(?!.*(\{\w+\}).*\1)(?:\/(?!:)(?:[^{}/*<>?#[\]\0-\x1f\x7f]*|\{\w+\}))+$/;

export function parsePattern(pattern: string) {
  if (!PATTERN.test(pattern)) return undefined;

  const written = pattern.split('/');
  return pathSegments(pattern)?.map((literal, index) => {
    const isParameter = written[index + 1]?.startsWith('{');
    return isParameter ? { name: literal.slice(1, -1) } : { literal };
  });
}

export type Segments = NonNullable<ReturnType<typeof parsePattern>>;

export const isMatch = (segments: Segments, texts: readonly string[]) =>
  segments.length === texts.length &&
  segments.every(({ literal }, at) => literal === undefined || literal === texts[at]);

/** Rewrites stray slashes and other routers' syntax as ours. */
const mended = (path: string) =>
  `/${path}`
    .replace(/\/(?::(\w+)|<(?:\w+:)?(\w+)>|\[(\w+)\])(?=\/|$)/g, '/{$1$2$3}')
    .replace(/\/{2,}/g, '/')
    .replace(/(.)\/$/, '$1');

/** False for what looks like a wildcard or parameter. */
const isPrefix = (path: string) =>
  !/^[^/]|[*{}<>?#[\]\0-\x1f\x7f]|\/:/.test(path) && pathSegments(path) !== undefined;

/** Throws a `TypeError`, which names the `owner`, for anything but a prefix. */
export function parsePrefix(owner: string, prefix: string) {
  const segments = isPrefix(prefix) ? pathSegments(prefix) : undefined;
  if (segments !== undefined) return segments;

  // A rule covers everything that a wildcard or parameter would match.
  const meant = mended(prefix).replace(/\/(\*+|\{\w+\})(\/.*)?$/, '') || '/';
  const fix = isPrefix(meant) ? meant : 'one such as /api/admin';
  throw new TypeError(`${owner}: must be a path prefix without wildcard or parameter; write ${fix}`);
}

/** Wrong characters, and what to write instead. */
const FIXES: readonly (readonly [RegExp, string])[] = [
  [/\*|\.\.\./, 'a route for each path, without wildcard, and {name} for a segment that varies'],
  [/[?#]/, 'the path alone: a query goes into query(), an optional part into a second route'],
  [/[:<>[\]{}]/, 'a parameter as {name}, which is a whole segment, and each name once'],
  [/^/, 'at most a hundred segments, no dot segment, broken escape or control character'],
];

export function patternProblem(pattern: string) {
  if (typeof pattern !== 'string') return 'is not a path pattern; write one such as /orders/{id}';

  const meant = mended(pattern);
  const [, other] = FIXES.find(([sign]) => sign.test(pattern)) ?? [];
  return `is not a path pattern; write ${parsePattern(meant) ? meant : other}`;
}

type Parsed = Readonly<{ pattern: string; segments: Segments | undefined }>;

/** Names a path that both patterns match. */
export function overlapProblem(one: Parsed, other: Parsed) {
  if (one.segments === undefined || other.segments === undefined) return undefined;

  const { segments } = other;
  const texts = one.segments.map(({ literal }, at) => literal ?? segments[at]?.literal ?? 'x');
  if (!isMatch(segments, texts)) return undefined;

  const path = texts.map(encodeURIComponent).join('/');
  return `${one.pattern} and ${other.pattern}: both match /${path}; give one of them another path`;
}
