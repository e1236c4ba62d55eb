// Table → row, by the path of a request. Promises: rows that overlap stop the start.
import { pathSegments } from '../request/path.ts';
import { rowFaults, type PathParameters, type PrefixRule, type Row, type Table } from './row.ts';

/** What stands at a path; shared by all who ask for it. */
export type Place = NonNullable<ReturnType<ReturnType<typeof createRouter>>>;

/**
 * Gives what finds the rows whose pattern of literals and `{parameters}` a path matches, and the rules whose
 * prefix covers it, but not where the service has rows of its own; `undefined` when the path has no canonical
 * form. The rows are those in which `tableProblems` finds nothing.
 */
export function createRouter(
  rows: readonly Row[],
  rules: readonly PrefixRule[] = [],
  ownRows: readonly Row[] = [],
) {
  // The list may be changed afterwards, as that of the rows may.
  const kept = rules.slice();
  const all = [...ownRows, ...rows];
  const routes = all.map((row) => ({ row, segments: parsePattern(row) ?? [] }));

  function search(path: string) {
    const texts = pathSegments(path);
    if (texts === undefined) return undefined;

    const isCovering = ({ prefix }: PrefixRule) => prefix.every((text, at) => texts[at] === text);
    const found = routes.filter(({ segments }) => isMatch(segments, texts));
    const matches = found.map(({ row, segments }) => {
      const parameters = parametersOf(segments, texts);
      return { row, parameters };
    });
    const isOwn = matches.some(({ row }) => ownRows.includes(row));
    return {
      /** Those whose prefix covers it. */
      rules: Object.freeze(isOwn ? [] : kept.filter(isCovering)),
      /** The rows whose pattern it matches, at most one for each method. */
      matches: Object.freeze(matches),
    };
  }

  /** What stands at the paths that are spelled like a pattern, found beforehand. */
  const places = new Map(all.map(({ pattern }) => [pattern, search(pattern)]));
  return (path: string) => places.get(path) ?? search(path);
}

/**
 * Why a table cannot be served by a service that answers at these paths itself: what in it is no row or rule,
 * or is called otherwise, what is wrong with each, patterns that are none or match such a path, and rows of
 * one method that overlap, each with a common path.
 */
export function tableProblems(table: Table, ownPaths: readonly string[] = []): string[] {
  const { rows, rules = [], ...others }: Table = Object(table);
  const strange = Object.keys(others).map(
    (name) => `${name}: is no part of a table, which has rows and rules`,
  );
  if (!Array.isArray(rows) || !Array.isArray(rules)) return [...strange, 'rows and rules: must be lists'];

  return [
    ...strange,
    // A copy has no holes.
    ...rowProblems([...rows], ownPaths),
    ...rules.flatMap((rule) => Object(rule).problems ?? 'rules: must be a list of what under gives'),
  ];
}

function rowProblems(rows: readonly Row[], ownPaths: readonly string[]) {
  const parsed = rows.map((row) => ({ ...row, segments: parsePattern(Object(row)) }));
  return parsed.flatMap(({ segments, ...row }, index) => {
    const { method, pattern } = row;
    const shadow = segments && shadowFaults(segments, ownPaths);
    const faults = [...rowFaults(row), ...(shadow ?? ['is not a path pattern'])];
    const problems = faults.map((fault) => `${method} ${pattern}: ${fault}`);
    if (segments === undefined) return problems;

    const earlierRows = parsed.slice(0, index).filter((row) => row.method === method);
    for (const earlier of earlierRows) {
      const common = earlier.segments && commonPath(earlier.segments, segments);
      if (common === undefined) continue;
      problems.push(`${method} ${earlier.pattern} and ${pattern}: both match ${common}`);
    }
    return problems;
  });
}

/** What is wrong with a pattern of these segments where the service answers itself, whatever the method. */
const shadowFaults = (segments: Segments, ownPaths: readonly string[]) =>
  ownPaths.flatMap((path) => {
    const texts = pathSegments(path);
    const isShadowed = texts !== undefined && isMatch(segments, texts);
    return isShadowed ? `matches ${path}, where the service answers itself; give it another` : [];
  });

/**
 * Braces hold a whole segment, and a name occurs once: `PathParameters` would promise more. What other
 * routers would take for any text, or for a query, would here be a text that no path has.
 */
const PATTERN = /^(?!.*(\{\w+\}).*\1)(?:\/(?!:)(?:[^{}/*<>?#[\]]*|\{\w+\}))+$/;

/** The segments of a pattern: of each the text that it is, or the name of its parameter. */
function parsePattern({ pattern }: Row) {
  if (!PATTERN.test(pattern)) return undefined;

  // A brace that is written as an escape is text.
  const written = pattern.split('/');
  return pathSegments(pattern)?.map((literal, index) => {
    const isParameter = written[index + 1]?.startsWith('{');
    return isParameter ? { name: literal.slice(1, -1) } : { literal };
  });
}

type Segments = NonNullable<ReturnType<typeof parsePattern>>;

/** Whether a path of these segments matches a pattern of those. */
const isMatch = (segments: Segments, texts: readonly string[]) =>
  segments.length === texts.length &&
  segments.every(({ literal }, at) => literal === undefined || literal === texts[at]);

/** The texts of a path at the parameters of a pattern that it matches. */
function parametersOf(segments: Segments, texts: readonly string[]): PathParameters {
  const values = segments.flatMap(({ name }, at) => {
    const text = texts[at] ?? '';
    return name === undefined ? [] : [[name, text] as const];
  });
  return Object.freeze(Object.fromEntries(values));
}

/** A path that both patterns match, if there is one. */
function commonPath(one: Segments, other: Segments) {
  // Where one of them has a literal, only that can be common; where both have a parameter, any text is.
  const path = one.map(({ literal }, index) => literal ?? other[index]?.literal ?? 'x');
  return isMatch(other, path) ? `/${path.map(encodeURIComponent).join('/')}` : undefined;
}
