// Path patterns: literals and `{parameters}`, and what is kept by them. Promises: every problem says what to
// write instead. Does not find a request's route: router.ts does.
import { pathSegments } from '../../verify/request/facts.ts';

/**
 * Parameters are whole segments with distinct names. Refuses wildcards and queries, which would be literal
 * text, and halves of characters, which no path has.
 */
const PATTERN = /^(?!.*(\{\w+\}).*\1)(?:\/(?!:)(?:[^{}/*<>?#[\]\0-\x1f\x7f\p{Cs}]*|\{\w+\}))+$/u;

/** By segment. A parameter has none: it stands for every text. */
export type Literals = readonly (string | undefined)[];

export function parsePattern(pattern: string): Literals | undefined {
  // A RegExp or a list of paths, as other routers take, would be tested as text.
  if (typeof pattern !== 'string' || !PATTERN.test(pattern)) return undefined;

  const written = pattern.split('/');
  return pathSegments(pattern)?.map((text, at) =>
    // Not by its own text, which may be an escaped `{`.
    written[at + 1]?.startsWith('{') ? undefined : text,
  );
}

/** The parameters, each with its place among the segments. */
export const namesIn = (pattern: string) =>
  pattern.split('/').flatMap((text, at) => {
    const name = text.slice(1, -1);
    return text.startsWith('{') ? [[name, at - 1] as const] : [];
  });

/** Whether the first matches every path of the second. */
export const covers = (general: Literals, special: Literals) =>
  general.length === special.length &&
  general.every((literal, at) => literal === undefined || literal === special[at]);

/** Entries by the next segment of their patterns. A parameter is `undefined`. */
export class Index<Entry> extends Map<string | undefined, Index<Entry>> {
  readonly #entries: Entry[] = [];

  /** An invalid pattern is at no path: no path has an empty segment. */
  add(literals: Literals = [''], entry: Entry): void {
    let last: Index<Entry> = this;
    for (const literal of literals) {
      const next = last.get(literal) ?? new Index();
      last.set(literal, next);
      last = next;
    }
    last.#entries.push(entry);
  }

  /**
   * Those whose patterns match this path, or a path of this pattern. A literal comes before a parameter, so
   * the more specific before the more general.
   */
  find(literals: Literals, at = 0, found: Entry[] = []): readonly Entry[] {
    if (at === literals.length) {
      found.push(...this.#entries);
    } else if (literals[at] === undefined) {
      for (const next of this.values()) next.find(literals, at + 1, found);
    } else {
      this.get(literals[at])?.find(literals, at + 1, found);
      this.get(undefined)?.find(literals, at + 1, found);
    }
    return found;
  }
}

/** Rewrites URLs, stray slashes and other routers' syntax as ours. */
const mended = (path: string) =>
  `/${path}`
    .replace(/\/(?::(\w+)|<(?:\w+:)?(\w+)>|\[(\w+)\])(?=\/|$)/g, '/{$1$2$3}')
    .replace(/^\/https?:\/\/[^/]*\/*|\/{2,}/g, '/')
    .replace(/(.)\/$/, '$1');

/** None for what looks like a wildcard or parameter, and for what is no text. */
const prefixSegments = (path: unknown) =>
  typeof path === 'string' && !/^[^/]|[*{}<>?#[\]\0-\x1f\x7f\p{Cs}]|\/:/u.test(path)
    ? pathSegments(path)
    : undefined;

/** Throws a `TypeError`, which names the `owner`, for anything but a prefix. */
export function parsePrefix(owner: string, prefix: string) {
  const segments = prefixSegments(prefix);
  if (segments !== undefined) return segments;

  // A rule covers everything that a wildcard or parameter would match.
  const meant = mended(prefix).replace(/\/(\*+|\{\w+\})(\/.*)?$/, '') || '/';
  const fix = prefixSegments(meant) ? meant : 'one such as /api/admin';
  throw new TypeError(`${owner}: must be a path prefix without wildcard or parameter; write ${fix}`);
}

/** Wrong characters, and what to write instead. */
const FIXES: readonly (readonly [RegExp, string])[] = [
  [/\*|\.\.\./, 'a route for each path, without wildcard, and {name} for a segment that varies'],
  [/[?#]/, 'the path alone: a query goes into query(), an optional part into a second route'],
  [/[:<>[\]{}]/, 'a parameter as {name}, of letters, digits and _, as a whole segment, and each name once'],
  [/^/, 'at most a hundred segments, no dot segment, broken escape or control character'],
];

export function patternProblem(pattern: string) {
  if (typeof pattern !== 'string') return 'is not a path pattern; write one such as /orders/{id}';

  const meant = mended(pattern);
  const [, other] = FIXES.find(([sign]) => sign.test(pattern)) ?? [];
  return `is not a path pattern; write ${parsePattern(meant) ? meant : other}`;
}
