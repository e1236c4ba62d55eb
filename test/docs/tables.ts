/* Converts tables and lists of documents to rows, and back. */

export type Cells = readonly string[];

export const code = (text: string) => `\`${text}\``;

/** The rows of the first table of a text, without the header; without a table, the items of its list. */
export function rowsOf(text: string): readonly Cells[] {
  const [table = ''] = /(?:^\|.*\n)+/m.exec(text) ?? [];
  if (table === '') {
    return [...text.matchAll(/^- (.+?): (.+)$/gm)].map(([, name = '', said = '']) => [name, said]);
  }

  const lines = table.trim().split('\n').slice(2);
  return lines.map((line) => line.slice(2, -2).split(' | '));
}

export function tableOf(head: Cells, rows: readonly Cells[]): string {
  const lines = rows.map((cells) => `| ${cells.join(' | ')} |\n`);
  return `| ${head.join(' | ')} |\n${'|---'.repeat(head.length)}|\n${lines.join('')}`;
}

/** A list whose items consist of a name and what is said of it. */
export const listOf = (rows: readonly Cells[]): string =>
  rows.map(([name, said]) => `- ${name}: ${said}\n`).join('');

/** Marks a cell that a person has yet to write. */
export const UNSAID = '–';

/**
 * Adds handwritten cells to derived ones: from the same row of the document, or from the row with the same
 * cell at `key`, up to a line break in it. Marks new ones as unwritten.
 */
export const withKept = (
  head: Cells,
  derived: readonly Cells[],
  written: readonly Cells[],
  key = 0,
): string => tableOf(head, keptIn(derived, written, head.length, key));

/** The same for a list of names. */
export const listWithKept = (names: readonly string[], written: readonly Cells[]): string =>
  listOf(
    keptIn(
      names.map((name) => [name]),
      written,
      2,
    ),
  );

function keptIn(derived: readonly Cells[], written: readonly Cells[], width: number, key = 0): Cells[] {
  const keyOf = (row: Cells) => row[key]?.split('<br>')[0];

  return derived.map((cells) => {
    const isSame = (row: Cells) => cells.every((cell, index) => row[index] === cell);
    const before = written.find(isSame) ?? written.find((row) => keyOf(row) === keyOf(cells)) ?? [];
    const kept = Array.from(
      { length: width - cells.length },
      (_, index) => before[cells.length + index] ?? UNSAID,
    );
    return [...cells, ...kept];
  });
}
