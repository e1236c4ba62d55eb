/* What `npm run evidence` can run: each tool is a folder with a `run.ts`. The comment that opens it ends with
   three lines, from which the table of the command and that of docs/evidence.md are made:

   Shows: what a reader learns from it, in Markdown.
   Takes: how long it takes on two cores, once its packages are there.
   Needs: what it needs besides `npm ci`; `packages` are those of test/evidence/package.json. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const EVIDENCE = fileURLToPath(new URL('../evidence/', import.meta.url));

export interface EvidenceTool {
  readonly name: string;
  readonly entry: string;
  readonly shows: string;
  readonly takes: string;
  readonly needs: string;
  readonly needsPackages: boolean;
}

function readTool(name: string): EvidenceTool {
  const entry = `${EVIDENCE}${name}/run.ts`;
  const [, comment = ''] = /^\/\*([^]*?)\*\//.exec(readFileSync(entry, 'utf8')) ?? [];
  const text = comment.replaceAll(/\s*\n[ *]*/g, ' ').trim();
  const [, shows, takes, needs] = /Shows: (.+)\. Takes: (.+)\. Needs: (.+)\.$/.exec(text) ?? [];
  if (shows === undefined || takes === undefined || needs === undefined) {
    throw new Error(`${entry}: its first comment must end with the lines Shows, Takes and Needs`);
  }
  return { name, entry, shows, takes, needs, needsPackages: needs.startsWith('packages') };
}

/** All of them, by name. */
export const readTools = (): readonly EvidenceTool[] =>
  readdirSync(EVIDENCE)
    .filter((name) => existsSync(`${EVIDENCE}${name}/run.ts`))
    .sort()
    .map(readTool);

/** The words of a text on lines that are no longer than this, unless a word is. */
function wrapped(text: string, width: number): readonly string[] {
  return text.split(' ').reduce<string[]>((lines, word) => {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) return [...lines, word];
    return [...lines.slice(0, -1), `${last} ${word}`];
  }, []);
}

const COLUMNS = { name: 13, shows: 60, takes: 12, needs: 22 } as const;

type Column = keyof typeof COLUMNS;

/** The table of tools for a terminal of 110 columns. Of a link, only the text is shown. */
export function tableOfTools(tools: readonly EvidenceTool[]): string {
  const head = { name: 'evidence', shows: 'shows', takes: 'takes', needs: 'needs besides npm ci' };

  const lines = [head, ...tools].flatMap((row) => {
    const cells = Object.entries(COLUMNS).map(([column, width]) => {
      const text = row[column as Column].replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1');
      return { width, lines: wrapped(text, width) };
    });
    const height = Math.max(...cells.map((cell) => cell.lines.length));
    return Array.from({ length: height }, (_, line) =>
      cells
        .map((cell) => (cell.lines[line] ?? '').padEnd(cell.width))
        .join(' ')
        .trimEnd(),
    );
  });
  return lines.join('\n');
}
