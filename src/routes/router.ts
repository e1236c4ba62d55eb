// Table → row, by the path of a request. Promises: rows that overlap stop the start.
import { pathSegments } from '../request/path.ts';
import { rowFaults, type PathParameters, type PrefixRule, type Row, type Table } from './row.ts';

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
 * Gives what finds the rows whose pattern of literals and `{parameters}` a path matches, and the rules whose
 * prefix covers it; `undefined` when the path has no canonical form. The rows are those in which
 * `tableProblems` finds nothing.
 */
export function createRouter(rows: readonly Row[], rules: readonly PrefixRule[] = []) {
  // The list may be changed afterwards, as that of the rows may.
  const kept = rules.slice();
  const routes = rows.map((row) => {
    const segments = parsePattern(row) ?? [];
    return { row, segments };
  });

  function search(texts: readonly string[] | undefined): Place | undefined {
    if (texts === undefined) return undefined;

    const covers = (prefix: readonly string[]) => prefix.every((text, at) => texts[at] === text);
    const matches = [];
    for (const { row, segments } of routes) {
      const parameters = parametersOf(segments, texts);
      if (parameters !== undefined) matches.push({ row, parameters });
    }
    return { rules: kept.filter(({ prefix }) => covers(prefix)), matches };
  }

  /** What stands at the paths that are spelled like a pattern, found beforehand. */
  const places = new Map<string, Place | undefined>();
  const find = (path: string) => places.get(path) ?? search(pathSegments(path));
  for (const { pattern } of rows) places.set(pattern, find(pattern));
  return find;
}

/**
 * Why a table cannot be served beside these rows of the service's own: what in it is no row or rule, or is
 * called otherwise, what is wrong with each, patterns that are none, and rows of one method that overlap,
 * each with a common path.
 */
export function tableProblems(table: Table, ownRows: readonly Row[] = []): string[] {
  const { rows, rules = [], ...others }: Table = Object(table);
  const strange = Object.keys(others).map(
    (name) => `${name}: is no part of a table, which has rows and rules`,
  );
  if (!Array.isArray(rows) || !Array.isArray(rules)) return [...strange, 'rows and rules: must be lists'];

  return [
    ...strange,
    ...rowProblems([...ownRows, ...rows]),
    ...rules.flatMap((rule) => Object(rule).problems ?? 'rules: must be a list of what under gives'),
  ];
}

function rowProblems(rows: readonly Row[]): string[] {
  const parsed = rows.map((row) => ({ ...row, segments: parsePattern(Object(row)) }));
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

/**
 * Braces hold a whole segment, and a name occurs once: `PathParameters` would promise more. What other
 * routers would take for any text, or for a query, would here be a text that no path has.
 */
const PATTERN = /^(?!.*(\{\w+\}).*\1)(?:\/(?!:)(?:[^{}/*<>?#[\]]*|\{\w+\}))+$/;

function parsePattern({ pattern }: Row): readonly Segment[] | undefined {
  if (!PATTERN.test(pattern)) return undefined;

  const written = pattern.split('/');
  return pathSegments(pattern)?.map((literal, index) => {
    const [, name] = /^\{(.+)\}$/.exec(written[index + 1] ?? '') ?? [];
    return name === undefined ? { literal } : { name };
  });
}

/** The texts at the parameters of a pattern, if these segments match it. */
function parametersOf(segments: readonly Segment[], texts: readonly string[]): PathParameters | undefined {
  if (segments.length !== texts.length) return undefined;

  const values: [name: string, text: string][] = [];
  for (const [index, { literal, name = '' }] of segments.entries()) {
    const text = texts[index] ?? '';
    if (literal === undefined) values.push([name, text]);
    else if (literal !== text) return undefined;
  }
  return Object.freeze(Object.fromEntries(values));
}

/** A path that both patterns match, if there is one. */
function commonPath(one: readonly Segment[], other: readonly Segment[]) {
  // Where one of them has a literal, only that can be common; where both have a parameter, any text is.
  const path = one.map(({ literal }, index) => literal ?? other[index]?.literal ?? 'x');
  return parametersOf(other, path) && `/${path.map(encodeURIComponent).join('/')}`;
}
