/* Tables of documents as lists of rows of cells, and back. */

export type Cells = readonly string[];

export const code = (text: string) => `\`${text}\``;

/** The rows of the first table of a text, without its head. */
export function rowsOf(text: string): readonly Cells[] {
  const [table = ''] = /(?:^\|.*\n)+/m.exec(text) ?? [];
  const lines = table.trim().split('\n').slice(2);
  return lines.map((line) => line.slice(2, -2).split(' | '));
}

export function tableOf(head: Cells, rows: readonly Cells[]): string {
  const lines = rows.map((cells) => `| ${cells.join(' | ')} |\n`);
  return `| ${head.join(' | ')} |\n${'|---'.repeat(head.length)}|\n${lines.join('')}`;
}

/** What stands where a person has still to say something. */
export const UNSAID = '–';

/**
 * Derived cells with those that only a person can write behind them: as the document has them in the very
 * same row, or in the one with the same cell at `key`; else unsaid.
 */
export function withKept(head: Cells, derived: readonly Cells[], written: readonly Cells[], key = 0): string {
  const rows = derived.map((cells) => {
    const isSame = (row: Cells) => cells.every((cell, index) => row[index] === cell);
    const before = written.find(isSame) ?? written.find((row) => row[key] === cells[key]) ?? [];
    const kept = head.slice(cells.length).map((_, index) => before[cells.length + index] ?? UNSAID);
    return [...cells, ...kept];
  });
  return tableOf(head, rows);
}
