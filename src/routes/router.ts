// Table → row, by the path of a request. Promises: rows that overlap stop the start.
import { pathSegments } from '../request/path.ts';
import {
  isRow,
  isRule,
  rowFaults,
  type PathParameters,
  type PrefixRule,
  type Row,
  type Table,
} from './row.ts';

/** What stands at a path. */
export interface Place {
  /** Those whose prefix covers it. */
  readonly rules: readonly PrefixRule[];
  /** The rows whose pattern it matches, at most one for each method. */
  readonly matches: readonly Readonly<{ row: Row; parameters: PathParameters }>[];
}

/** A segment of a pattern: a literal text, or the name of a parameter. */
type Segment = Readonly<{ literal?: string; name?: string }>;

/**
 * Finds the rows whose pattern of literals and `{parameters}` a path matches, and the rules whose prefix
 * covers it.
 */
export class Router {
  readonly #routes: readonly Readonly<{ row: Row; segments: readonly Segment[] }>[];
  readonly #rules: readonly PrefixRule[];
  /** What stands at the paths that are spelled like a pattern, found beforehand. */
  readonly #places = new Map<string, Place | undefined>();

  /** The rows are those in which `tableProblems` finds nothing. */
  constructor(rows: readonly Row[], rules: readonly PrefixRule[] = []) {
    // The list may be changed afterwards, as that of the rows may.
    this.#rules = rules.slice();
    this.#routes = rows.map((row) => {
      const segments = parsePattern(row.pattern) ?? [];
      return { row, segments };
    });
    for (const { pattern } of rows) this.#places.set(pattern, this.find(pattern));
  }

  /** `undefined` when the path has no canonical form. */
  find(path: string): Place | undefined {
    return this.#places.get(path) ?? this.#search(pathSegments(path));
  }

  #search(texts: readonly string[] | undefined): Place | undefined {
    if (texts === undefined) return undefined;

    const covers = (prefix: readonly string[]) => prefix.every((text, index) => texts[index] === text);
    const rules = this.#rules.filter(({ prefix }) => covers(prefix));
    const routes = this.#routes.filter(({ segments }) => isMatch(segments, texts));
    const matches = routes.map(({ row, segments }) => {
      const parameters = parametersOf(segments, texts);
      return { row, parameters };
    });
    return { rules, matches };
  }
}

/**
 * Why a table cannot be served beside these rows of the service's own: what in it is no row or rule, or is
 * called otherwise, what is wrong with each, patterns that are none, and rows of one method that overlap,
 * each with a common path.
 */
export function tableProblems(table: Table, ownRows: readonly Row[] = []): string[] {
  const { rows, rules = [], ...others }: Table = Object(table);
  const allRows = membersOf(rows);
  const allRules = membersOf(rules);

  return [
    ...strangersIn(allRows, isRow, 'rows: must be a list of what get, post, put, patch and del give'),
    ...strangersIn(allRules, isRule, 'rules: must be a list of what under gives'),
    ...Object.keys(others).map((name) => `${name}: is no part of a table, which has rows and rules`),
    ...rowProblems([...ownRows, ...allRows.filter(isRow)]),
    ...allRules.filter(isRule).flatMap(({ faults }) => faults),
  ];
}

/** Who writes JavaScript may leave holes in a list, or give none. */
const membersOf = (list: unknown): readonly unknown[] => (Array.isArray(list) ? list : [undefined]);

function strangersIn(list: readonly unknown[], isMade: (part: unknown) => boolean, demand: string) {
  const strange = [...list.keys()].filter((index) => !isMade(list[index]));
  return strange.map((index) => `${demand}, and has something else at ${index}`);
}

function rowProblems(rows: readonly Row[]): string[] {
  const parsed = rows.map((row) => ({ ...row, segments: parsePattern(row.pattern) }));
  return parsed.flatMap(({ segments, ...row }, index) => {
    const { method, pattern } = row;
    const problems = rowFaults(row).map((fault) => `${method} ${pattern}: ${fault}`);
    if (segments === undefined) return [...problems, `${method} ${pattern}: is not a path pattern`];

    const earlierRows = parsed.slice(0, index).filter((row) => row.method === method);
    for (const earlier of earlierRows) {
      const common = commonPath(earlier.segments ?? [], segments);
      if (common === undefined) continue;
      problems.push(`${method} ${earlier.pattern} and ${pattern}: both match ${common}`);
    }
    return problems;
  });
}

/** Braces hold a whole segment, and a name occurs once: `PathParameters` would promise more. */
const PATTERN = /^(?!.*(\{\w+\}).*\1)(?:\/(?:[^{}/]*|\{\w+\}))+$/;

function parsePattern(pattern: string): readonly Segment[] | undefined {
  if (!PATTERN.test(pattern)) return undefined;

  const written = pattern.split('/');
  return pathSegments(pattern)?.map((literal, index) => {
    const [, name] = /^\{(.+)\}$/.exec(written[index + 1] ?? '') ?? [];
    return name === undefined ? { literal } : { name };
  });
}

function isMatch(segments: readonly Segment[], texts: readonly string[]) {
  if (segments.length !== texts.length) return false;

  return segments.every(({ literal }, index) => literal === undefined || literal === texts[index]);
}

function parametersOf(segments: readonly Segment[], texts: readonly string[]) {
  const values = segments.map(({ name = '' }, index) => {
    const text = texts[index] ?? '';
    return [name, text] as const;
  });
  return Object.freeze(Object.fromEntries(values.filter(([name]) => name !== '')));
}

/** A path that both patterns match, if there is one. */
function commonPath(one: readonly Segment[], other: readonly Segment[]) {
  // Where one of them has a literal, only that can be common; where both have a parameter, any text is.
  const path = one.map(({ literal }, index) => literal ?? other[index]?.literal ?? 'x');
  if (!isMatch(one, path) || !isMatch(other, path)) return undefined;

  return `/${path.map(encodeURIComponent).join('/')}`;
}
