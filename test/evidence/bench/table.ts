/* Results as text. */
import type { Results, Section } from './results.ts';

const number = (value: number): string =>
  value.toLocaleString(
    'en',
    value < 10 ? { minimumFractionDigits: 2, maximumFractionDigits: 2 } : { maximumFractionDigits: 0 },
  );

/** Columns of fixed width: the first left-aligned, the others right-aligned. */
function columns(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));

  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!)))
      .join('  ')
      .trimEnd();

  return rows.map((row) => `  ${line(row)}\n`).join('');
}

const goalText = (goal: number | undefined) => (goal === undefined ? '' : ` (goal: ${goal.toFixed(2)})`);

const sectionText = ({ title, unit, goal, rows }: Section): string =>
  `\n${title}${unit === 'µs' ? ', processor time a request' : ''}${goalText(goal)}\n${columns([['', unit, 'ratio'], ...rows.map(({ server, value, ratio }) => [server, number(value), ratio.toFixed(2)])])}`;

/** One line for the machine, one for the conditions. */
export function describeRun({ machine, rounds, seconds }: Results): string[] {
  const { processor, cores, node, system, pinned, load } = machine;
  return [
    `${processor}, ${cores} cores, ${system}, Node ${node}`,
    `medians of ${rounds} round${rounds === 1 ? '' : 's'} of ${seconds} s; pinned: ${pinned}; load: ${load}`,
  ];
}

/** Every section with its figures and their ratios to the base. */
export function table(results: Results): string {
  const { review, sections } = results;
  const reviews = review.map(({ server, packages, files, tokens }) =>
    [server, number(packages), number(files), number(tokens)].map((cell) => cell.replace(/\.00$/, '')),
  );
  const reviewText =
    review.length === 0 ? '' : `\nto review\n${columns([['', 'packages', 'files', 'tokens'], ...reviews])}`;
  return `${describeRun(results).join('\n')}\n${sections.map(sectionText).join('')}${reviewText}`;
}
