// Table → row, by the path of a request. Promises: rows that overlap stop the start.
import { pathSegments } from '../request/path.ts';
import type { PathParameters } from './row.ts';

/** One segment of a pattern: literal text, or the name of a parameter. */
type PatternSegment = Readonly<{ literal: string } | { parameter: string }>;

/** What stands at a path. */
export interface Place<Row, Rule> {
  /** The rule that covers it, if any. */
  readonly rule: Rule | undefined;
  readonly row: Row | undefined;
  readonly parameters: PathParameters;
}

interface Route<Row> {
  readonly row: Row;
  readonly segments: readonly PatternSegment[];
}

/** Finds the row whose pattern of literals and `{parameters}` a path matches, and the first rule whose prefix covers it. */
export class Router<
  Row extends { readonly pattern: string },
  Rule extends { readonly prefix: readonly string[] },
> {
  readonly #routes: readonly Route<Row>[];
  readonly #rules: readonly Rule[];
  /** What stands at the paths that are spelled like a pattern, found beforehand. */
  readonly #places = new Map<string, Place<Row, Rule> | undefined>();

  /** Throws an `Error` that names both rows and a common path when two rows overlap. */
  constructor(rows: readonly Row[], rules: readonly Rule[] = []) {
    this.#rules = rules;
    this.#routes = rows.map((row) => ({ row, segments: parsePattern(row.pattern) }));
    for (const [index, route] of this.#routes.entries()) {
      for (const earlier of this.#routes.slice(0, index)) checkApart(earlier, route);
      this.#places.set(route.row.pattern, this.find(route.row.pattern));
    }
  }

  /** `undefined` when the path has no canonical form. */
  find(path: string): Place<Row, Rule> | undefined {
    return this.#places.get(path) ?? this.#search(pathSegments(path));
  }

  #search(segments: readonly string[] | undefined): Place<Row, Rule> | undefined {
    if (segments === undefined) return undefined;

    const rule = this.#rules.find(({ prefix }) => prefix.every((text, index) => segments[index] === text));
    const route = this.#routes.find((candidate) => matches(candidate.segments, segments));
    return { rule, row: route?.row, parameters: parametersOf(route?.segments ?? [], segments) };
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

const literalOf = (part: PatternSegment | undefined) =>
  part !== undefined && 'literal' in part ? part.literal : undefined;

function matches(pattern: readonly PatternSegment[], segments: readonly string[]): boolean {
  if (pattern.length !== segments.length) return false;

  return pattern.every((part, index) => 'parameter' in part || part.literal === segments[index]);
}

function parametersOf(pattern: readonly PatternSegment[], segments: readonly string[]): PathParameters {
  const parameters: [name: string, value: string][] = [];
  for (const [index, part] of pattern.entries()) {
    if ('parameter' in part) parameters.push([part.parameter, segments[index] ?? '']);
  }
  return Object.freeze(Object.fromEntries(parameters));
}

function checkApart(
  one: Route<{ readonly pattern: string }>,
  other: Route<{ readonly pattern: string }>,
): void {
  const common = commonPath(one.segments, other.segments);
  if (common !== undefined)
    throw new Error(`${one.row.pattern} and ${other.row.pattern} both match ${common}`);
}

/** A path that both patterns match, if there is one. */
function commonPath(one: readonly PatternSegment[], other: readonly PatternSegment[]): string | undefined {
  // Where one of them has a literal, only that can be common; where both have a parameter, any text is.
  const path = one.map((part, index) => literalOf(part) ?? literalOf(other[index]) ?? 'x');
  if (!matches(one, path) || !matches(other, path)) return undefined;

  return `/${path.map(encodeURIComponent).join('/')}`;
}
