/* Tables of figures, printed at the end of a run. */
import { after } from 'node:test';

export type Row = Readonly<Record<string, string | number>>;

const shown = (value: string | number | undefined) =>
  typeof value === 'number' && !Number.isInteger(value) ? value.toFixed(2) : String(value ?? '');

export function printTable(title: string, rows: readonly Row[]): void {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const lines = [names, ...rows.map((row) => names.map((name) => shown(row[name])))];
  const widths = names.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)));
  const text = lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
  process.stdout.write(`\n${title}\n${text}\n\n`);
}

/** Rows that tests fill; printed after the last test. */
export function figures(title: string): Row[] {
  const rows: Row[] = [];
  after(() => printTable(title, rows));
  return rows;
}
