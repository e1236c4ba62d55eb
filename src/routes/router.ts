// Table → row, by the path of a request. Promises: rows that overlap stop the start.
import { pathSegments } from '../request/path.ts';
import type { PathParameters } from './row.ts';

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

/** A pattern by its segments: at each place either a literal text or the name of a parameter. */
interface Pattern {
  readonly literals: readonly (string | undefined)[];
  readonly names: readonly (string | undefined)[];
}

const NO_PATTERN: Pattern = { literals: [], names: [] };

type Routable = Readonly<{ method: string; pattern: string }>;

/**
 * Finds the rows whose pattern of literals and `{parameters}` a path matches, and the first rule whose prefix
 * covers it.
 */
export class Router<Row extends Routable, Rule extends { readonly prefix: readonly string[] }> {
  readonly #routes: readonly (Pattern & { readonly row: Row })[];
  readonly #rules: readonly Rule[];
  /** What stands at the paths that are spelled like a pattern, found beforehand. */
  readonly #places = new Map<string, Place<Row, Rule> | undefined>();

  /** The rows are those in which `tableProblems` finds nothing. */
  constructor(rows: readonly Row[], rules: readonly Rule[] = []) {
    this.#rules = rules;
    this.#routes = rows.map((row) => {
      const pattern = parsePattern(row.pattern) ?? NO_PATTERN;
      return { row, ...pattern };
    });
    for (const { pattern } of rows) this.#places.set(pattern, this.find(pattern));
  }

  /** `undefined` when the path has no canonical form. */
  find(path: string): Place<Row, Rule> | undefined {
    return this.#places.get(path) ?? this.#search(pathSegments(path));
  }

  #search(segments: readonly string[] | undefined): Place<Row, Rule> | undefined {
    if (segments === undefined) return undefined;

    const covers = (prefix: readonly string[]) => prefix.every((text, index) => segments[index] === text);
    const routes = this.#routes.filter(({ literals }) => isMatch(literals, segments));
    const matches = routes.map(({ row, names }) => {
      const parameters = parametersOf(names, segments);
      return { row, parameters };
    });
    return { rule: this.#rules.find(({ prefix }) => covers(prefix)), matches };
  }
}

/**
 * Why a table cannot be served: patterns that are none, and rows of one method that overlap, each with a
 * common path.
 */
export function tableProblems(rows: readonly Routable[]): string[] {
  const problems: string[] = [];
  const earlierRows: (Routable & Pattern)[] = [];
  for (const { method, pattern } of rows) {
    const parsed = parsePattern(pattern);
    if (parsed === undefined) {
      problems.push(`${method} ${pattern}: is not a path pattern`);
      continue;
    }

    for (const earlier of earlierRows) {
      const common = earlier.method === method ? commonPath(earlier.literals, parsed.literals) : undefined;
      if (common === undefined) continue;
      problems.push(`${method} ${earlier.pattern} and ${pattern}: both match ${common}`);
    }
    earlierRows.push({ method, pattern, ...parsed });
  }
  return problems;
}

/** Braces hold a whole segment, and a name occurs once: `PathParameters` would promise more. */
const PATTERN = /^(?!.*(\{\w+\}).*\1)(?:\/(?:[^{}/]*|\{\w+\}))+$/;

function parsePattern(pattern: string): Pattern | undefined {
  const segments = PATTERN.test(pattern) ? pathSegments(pattern) : undefined;
  if (segments === undefined) return undefined;

  const written = pattern.slice(1).split('/');
  const names = written.map((text) => /^\{(.+)\}$/.exec(text)?.[1]);
  const literals = segments.map((text, index) => (names[index] === undefined ? text : undefined));
  return { literals, names };
}

function isMatch(literals: Pattern['literals'], segments: readonly string[]): boolean {
  if (literals.length !== segments.length) return false;

  return literals.every((text, index) => text === undefined || text === segments[index]);
}

function parametersOf(names: Pattern['names'], segments: readonly string[]): PathParameters {
  const values = segments.map((text, index) => [names[index] ?? '', text] as const);
  return Object.freeze(Object.fromEntries(values.filter(([name]) => name !== '')));
}

/** A path that both patterns match, if there is one. */
function commonPath(one: Pattern['literals'], other: Pattern['literals']): string | undefined {
  // Where one of them has a literal, only that can be common; where both have a parameter, any text is.
  const path = one.map((text, index) => text ?? other[index] ?? 'x');
  if (!isMatch(one, path) || !isMatch(other, path)) return undefined;

  return `/${path.map(encodeURIComponent).join('/')}`;
}
