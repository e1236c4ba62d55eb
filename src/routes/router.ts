// Request target → decoded segments → row: one reading of the path decides both the route and its access. Never parses the target
// as a URL (`//host/x` would change the host). Promises: one canonical form or none (404); rows that overlap stop the start.
import { unless } from '../base/encoding.ts';
import { refuseRequest } from '../base/refusal.ts';

/** One segment of a pattern: literal text, or the name of a parameter. */
type PatternSegment = Readonly<{ literal: string } | { parameter: string }>;
type Parameters = Readonly<Record<string, string>>;
/** What stands at a path: the rule that covers it, if any, and the row with its parameters, if any. */
export type Place<Row, Rule> = Readonly<{
  rule: Rule | undefined;
  row: Row | undefined;
  parameters: Parameters;
}>;
/** The path of an origin-form target (RFC 9112 §3.2.1) without its query. Throws `Refused` for any other form. */
export function targetPath(target: string): string {
  // Stricter: RFC 9112 §3.2.2 would have us read the absolute form too.
  if (target[0] !== '/') throw refuseRequest('target-refused');
  const end = target.indexOf('?');
  return end < 0 ? target : target.slice(0, end);
}
/** The percent-decoded segments of a path; `undefined` when an escape is broken or not UTF-8 (RFC 3986 §2.1), or a segment is
 * empty (trailing slash, `//`) or a dot segment (§3.3). An encoded slash stays inside its segment. */
export function pathSegments(path: string): readonly string[] | undefined {
  const segments = unless(URIError, () => path.slice(1).split('/').map(decodeURIComponent));
  return segments?.some((segment) => segment === '' || segment === '.' || segment === '..')
    ? undefined
    : segments;
}
/** Finds the row for a path among rows whose patterns are literals and `{parameters}`, and the first rule whose prefix covers it. */
export class Router<
  Row extends { readonly pattern: string },
  Rule extends { readonly prefix: readonly string[] },
> {
  readonly #rows: readonly Readonly<{ row: Row; segments: readonly PatternSegment[] }>[];
  readonly #rules: readonly Rule[];
  /** What stands at the paths that are spelled like a pattern, found beforehand. */
  readonly #known = new Map<string, Place<Row, Rule> | undefined>();
  /** Throws an `Error` that names both rows and a common path when two rows overlap. */
  constructor(rows: readonly Row[], rules: readonly Rule[] = []) {
    this.#rules = rules;
    this.#rows = rows.map((row) => ({ row, segments: parsePattern(row.pattern) }));
    for (const [index, { row, segments }] of this.#rows.entries()) {
      for (const other of this.#rows.slice(0, index)) {
        const common = commonPath(other.segments, segments);
        if (common !== undefined)
          throw new Error(`${other.row.pattern} and ${row.pattern} both match ${common}`);
      }
      this.#known.set(row.pattern, this.find(row.pattern));
    }
  }
  /** `undefined` when the path has no canonical form. */
  find(path: string): Place<Row, Rule> | undefined {
    return this.#known.get(path) ?? this.#search(pathSegments(path));
  }
  #search(segments: readonly string[] | undefined): Place<Row, Rule> | undefined {
    if (segments === undefined) return undefined;
    const rule = this.#rules.find(({ prefix }) =>
      prefix.every((segment, index) => segments[index] === segment),
    );
    const found = this.#rows.find((candidate) => matches(candidate.segments, segments));
    const named =
      found?.segments.flatMap((part, index) =>
        'parameter' in part ? [[part.parameter, segments[index] ?? '']] : [],
      ) ?? [];
    return { rule, row: found?.row, parameters: Object.freeze(Object.fromEntries(named)) };
  }
}
function parsePattern(pattern: string): readonly PatternSegment[] {
  const segments = pathSegments(pattern);
  if (pattern[0] !== '/' || segments === undefined) throw new Error(`${pattern} is not a path pattern`);
  return segments.map((text) => {
    const parameter = /^\{(\w+)\}$/.exec(text)?.[1];
    return parameter === undefined ? { literal: text } : { parameter };
  });
}
const matches = (pattern: readonly PatternSegment[], segments: readonly string[]) =>
  pattern.length === segments.length &&
  pattern.every((part, index) => 'parameter' in part || part.literal === segments[index]);
/** A path that both patterns match, if there is one. */
function commonPath(one: readonly PatternSegment[], other: readonly PatternSegment[]): string | undefined {
  const path = one.map(
    (part, index) =>
      [part, other[index]].flatMap((either) => (either && 'literal' in either ? [either.literal] : []))[0] ??
      'x',
  );
  return matches(one, path) && matches(other, path)
    ? `/${path.map(encodeURIComponent).join('/')}`
    : undefined;
}
