// Table → row, by the path of a request. Promises: rows that overlap stop the start.
import { pathSegments } from '../../gate/path.ts';
import { isMatch, overlapFault, parsePattern, patternFault, type Segments } from './pattern.ts';
import { rowFaults, type PathParameters, type PrefixRule, type Row, type Table } from './route.ts';

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
  const routes = all.map((row) => ({ row, segments: parsePattern(row.pattern) ?? [] }));

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
  const copies = rows.map((row) => ({ ...row }));
  const parsed = copies.map((row) => ({ ...row, segments: parsePattern(row.pattern) }));
  return parsed.flatMap(({ segments, ...row }, index) => {
    const { method, pattern } = row;
    const shadow = segments && shadowFaults(segments, ownPaths);
    const faults = [...rowFaults(row), ...(shadow ?? [patternFault(pattern)])];
    const problems = faults.map((fault) => `${method} ${pattern}: ${fault}`);

    const earlierRows = parsed.slice(0, index).filter((row) => row.method === method);
    const overlaps = earlierRows.flatMap((earlier) => overlapFault(earlier, { pattern, segments }) ?? []);
    return [...problems, ...overlaps.map((fault) => `${method} ${fault}`)];
  });
}

/** What is wrong with a pattern of these segments where the service answers itself, whatever the method. */
const shadowFaults = (segments: Segments, ownPaths: readonly string[]) =>
  ownPaths.flatMap((path) => {
    const texts = pathSegments(path);
    const isShadowed = texts !== undefined && isMatch(segments, texts);
    return isShadowed ? `matches ${path}, where the service answers itself; give it another` : [];
  });

/** The texts of a path at the parameters of a pattern that it matches. */
function parametersOf(segments: Segments, texts: readonly string[]): PathParameters {
  const values = segments.flatMap(({ name }, at) => {
    const text = texts[at] ?? '';
    return name === undefined ? [] : [[name, text] as const];
  });
  return Object.freeze(Object.fromEntries(values));
}
