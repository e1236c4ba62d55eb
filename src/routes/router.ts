// Table → row, by the path of a request. Promises: rows that overlap stop the start.
import { pathSegments } from '../request/path.ts';
import type { PathParameters } from './row.ts';

/** One segment of a pattern: literal text, or the name of a parameter. */
type PatternSegment = Readonly<{ literal: string } | { parameter: string }>;

/** A row whose pattern a path matches. */
interface Match<Row> {
  readonly row: Row;
  readonly parameters: PathParameters;
}

/** What stands at a path. */
export interface Place<Row, Rule> {
  /** The rule that covers it, if any. */
  readonly rule: Rule | undefined;
  /** At most one for each method. */
  readonly matches: readonly Match<Row>[];
}

interface Route<Row> {
  readonly row: Row;
  readonly segments: readonly PatternSegment[];
}

type Routable = Readonly<{ method: string; pattern: string }>;

/**
 * Finds the rows whose pattern of literals and `{parameters}` a path matches, and the first rule whose prefix
 * covers it.
 */
export class Router<Row extends Routable, Rule extends { readonly prefix: readonly string[] }> {
  readonly #routes: readonly Route<Row>[];
  readonly #rules: readonly Rule[];
  /** What stands at the paths that are spelled like a pattern, found beforehand. */
  readonly #places = new Map<string, Place<Row, Rule> | undefined>();

  /** The rows are those in which `tableProblems` finds nothing. */
  constructor(rows: readonly Row[], rules: readonly Rule[] = []) {
    this.#rules = rules;
    this.#routes = rows.map((row) => ({ row, segments: parsePattern(row.pattern) ?? [] }));
    for (const { pattern } of rows) this.#places.set(pattern, this.find(pattern));
  }

  /** `undefined` when the path has no canonical form. */
  find(path: string): Place<Row, Rule> | undefined {
    return this.#places.get(path) ?? this.#search(pathSegments(path));
  }

  #search(segments: readonly string[] | undefined): Place<Row, Rule> | undefined {
    if (segments === undefined) return undefined;

    const rule = this.#rules.find(({ prefix }) => prefix.every((text, index) => segments[index] === text));
    const routes = this.#routes.filter((route) => matches(route.segments, segments));
    return {
      rule,
      matches: routes.map((route) => ({
        row: route.row,
        parameters: parametersOf(route.segments, segments),
      })),
    };
  }
}

/**
 * Why a table cannot be served: patterns that are none, and rows of one method that overlap, each with a
 * common path.
 */
export function tableProblems(rows: readonly Routable[]): string[] {
  const problems: string[] = [];
  const routes: Route<Routable>[] = [];
  for (const row of rows) {
    const segments = parsePattern(row.pattern);
    if (segments === undefined) problems.push(`${row.method} ${row.pattern}: is not a path pattern`);
    else routes.push({ row, segments });
  }

  for (const [index, { row, segments }] of routes.entries()) {
    for (const earlier of routes.slice(0, index)) {
      const common = earlier.row.method === row.method ? commonPath(earlier.segments, segments) : undefined;
      if (common === undefined) continue;
      problems.push(`${row.method} ${earlier.row.pattern} and ${row.pattern}: both match ${common}`);
    }
  }
  return problems;
}

/** Braces hold a whole segment, and a name occurs once: `PathParameters` would promise more. */
const PATTERN = /^(?!.*(\{\w+\}).*\1)(?:\/(?:[^{}/]*|\{\w+\}))+$/;

function parsePattern(pattern: string): readonly PatternSegment[] | undefined {
  const segments = PATTERN.test(pattern) ? pathSegments(pattern) : undefined;
  return segments?.map((text) => {
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

/** A path that both patterns match, if there is one. */
function commonPath(one: readonly PatternSegment[], other: readonly PatternSegment[]): string | undefined {
  // Where one of them has a literal, only that can be common; where both have a parameter, any text is.
  const path = one.map((part, index) => literalOf(part) ?? literalOf(other[index]) ?? 'x');
  if (!matches(one, path) || !matches(other, path)) return undefined;

  return `/${path.map(encodeURIComponent).join('/')}`;
}
