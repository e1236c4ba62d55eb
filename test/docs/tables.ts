/* Converts tables of documents to lists of rows, and back. */

export type Cells = readonly string[];

export const code = (text: string) => `\`${text}\``;

/** The rows of the first table of a text, without the header. */
export function rowsOf(text: string): readonly Cells[] {
  const [table = ''] = /(?:^\|.*\n)+/m.exec(text) ?? [];
  const lines = table.trim().split('\n').slice(2);
  return lines.map((line) => line.slice(2, -2).split(' | '));
}

export function tableOf(head: Cells, rows: readonly Cells[]): string {
  const lines = rows.map((cells) => `| ${cells.join(' | ')} |\n`);
  return `| ${head.join(' | ')} |\n${'|---'.repeat(head.length)}|\n${lines.join('')}`;
}

/** Marks a cell that a person has yet to write. */
export const UNSAID = '–';

/**
 * Adds handwritten cells to derived ones: from the same row of the document, or from the row with the same
 * cell at `key`, up to a line break in it. Marks new ones as unwritten.
 */
export function withKept(head: Cells, derived: readonly Cells[], written: readonly Cells[], key = 0): string {
  const keyOf = (row: Cells) => row[key]?.split('<br>')[0];

  const rows = derived.map((cells) => {
    const isSame = (row: Cells) => cells.every((cell, index) => row[index] === cell);
    const before = written.find(isSame) ?? written.find((row) => keyOf(row) === keyOf(cells)) ?? [];
    const kept = head.slice(cells.length).map((_, index) => before[cells.length + index] ?? UNSAID);
    return [...cells, ...kept];
  });
  return tableOf(head, rows);
}
