/* The index of clauses: which file of src cites a clause, and which tests do. Tests cite in their names, or
   in the tables that names are made of. */
import { readFileSync } from 'node:fs';
import { filesBelow } from '../support/tree.ts';
import { INDEXED, clausesIn, commentsOf, isWithin, withoutComments, type Clause } from './citations.ts';

const ROOT = new URL('../../', import.meta.url);

export interface Entry {
  readonly clause: Clause;
  readonly files: readonly string[];
  /** `file: name of a test` */
  readonly tests: readonly string[];
}

interface Citation {
  readonly clause: Clause;
  readonly where: string;
}

const sourcesIn = (folder: string, isWanted: (name: string) => boolean) =>
  filesBelow(new URL(folder, ROOT))
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => isWanted(name) && !name.includes('node_modules/'))
    .sort()
    .map((name) => [name, readFileSync(new URL(folder + name, ROOT), 'utf8')] as const);

function citedByCode(): Citation[] {
  const marked = sourcesIn('src/', (name) => name.endsWith('.ts')).flatMap(([where, source]) =>
    commentsOf(source)
      .flatMap(clausesIn)
      .map((clause) => ({ clause, where })),
  );
  return marked;
}

/**
 * The name of the test that a place in a test file belongs to: the name that contains it, or else the next
 * name with a `${}`.
 */
function nameAt(source: string, offset: number): string {
  const names = [...source.matchAll(/\btest\(\s*(?:`([^`]*)`|'((?:[^'\\]|\\.)*)')/g)].map(
    ({ index, 0: all, 1: template, 2: plain }) => ({
      start: index,
      end: index + all.length,
      name: template ?? plain ?? '',
    }),
  );
  const own = names.find(({ start, end }) => start <= offset && offset < end);
  const made = names.filter(({ name }) => name.includes('${'));
  return (
    (own ?? made.find(({ start }) => start > offset) ?? made.at(-1))?.name.replace(/\$\{[^}]*\}/g, '…') ?? ''
  );
}

/** The tests of the product, so neither those of the fake provider nor of the demo. */
function citedByTests(): Citation[] {
  const files = sourcesIn(
    'test/',
    (name) => /\.(?:test|long)\.ts$/.test(name) && !/^(?:idp|demo|clauses)\//.test(name),
  );
  return files.flatMap(([file, source]) => {
    const code = withoutComments(source);
    return [...code.matchAll(/'(?:[^'\\\n]|\\.)*'|`[^`]*`/g)].flatMap(({ index, 0: literal }) =>
      clausesIn(literal)
        .map((clause) => ({ clause, where: `${file}: ${nameAt(code, index)}` }))
        .filter(({ where }) => !where.endsWith(': ')),
    );
  });
}

const uniquely = (texts: readonly string[]) => [...new Set(texts)];

const sectionOf = (clause: Clause) => clause.replace(/\d+/g, (digits) => digits.padStart(5, '0'));

export interface ClauseIndex {
  readonly entries: readonly Entry[];
  /** Cited by the code, by no test. */
  readonly untested: readonly string[];
  /** Cited by tests, by no code. */
  readonly unheld: readonly string[];
}

/**
 * A clause is tested when a test cites it or a part of it; held when code cites it, a part of it, or the
 * whole that it is a part of.
 */
export function readClauses(): ClauseIndex {
  const code = citedByCode();
  const tests = citedByTests();
  const clauses = uniquely(code.map(({ clause }) => clause)).sort((one, other) =>
    sectionOf(one) < sectionOf(other) ? -1 : 1,
  );
  const entries = clauses.map((clause) => ({
    clause,
    files: uniquely(code.filter((one) => one.clause === clause).map(({ where }) => where)),
    tests: uniquely(tests.filter((one) => isWithin(one.clause, clause)).map(({ where }) => where)),
  }));

  const isHeld = (clause: Clause) =>
    clauses.some((held) => isWithin(held, clause) || (held.includes('§') && isWithin(clause, held)));

  return {
    entries,
    untested: entries
      .filter((entry) => entry.tests.length === 0)
      .map(({ clause, files }) => `${clause} (${files.join(', ')})`),
    unheld: uniquely(
      tests.filter(({ clause }) => !isHeld(clause)).map(({ clause, where }) => `${clause} (${where})`),
    ),
  };
}

/** The standards of the list that neither side cites. */
export const absent = ({ entries }: ClauseIndex) =>
  INDEXED.filter((name) => !entries.some(({ clause }) => isWithin(clause, name)));
