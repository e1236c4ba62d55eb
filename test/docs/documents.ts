/* The documents with their generated blocks: the text between two comments comes from src. */
import { BLOCKS } from './blocks.ts';
import { PAGES, read } from './pages.ts';
import { rowsOf, UNSAID } from './tables.ts';

export interface Document {
  /** Its path in the repository, such as `docs/keys.md`. */
  readonly name: string;
  readonly written: string;
  /** The document with every block generated again. */
  readonly current: string;
  /** Rows with cells that a person must still write, by their first two cells. */
  readonly unsaid: readonly string[];
}

const GENERATED = /(<!-- generated: ([\w-]+) -->\n)([^]*?)(<!-- end -->)/g;

async function readDocument(name: string): Promise<Document> {
  const written = read(name);
  const unsaid: string[] = [];
  let current = '';
  let end = 0;
  for (const {
    index,
    0: all,
    1: opening = '',
    2: block = '',
    3: body = '',
    4: closing = '',
  } of written.matchAll(GENERATED)) {
    const generate = BLOCKS[block];
    if (generate === undefined) throw new Error(`${name}: nothing generates "${block}"`);
    const text = await generate(rowsOf(body));
    unsaid.push(...rowsOf(text).flatMap((row) => (row.includes(UNSAID) ? [row.slice(0, 2).join(' ')] : [])));
    current += written.slice(end, index) + opening + text + closing;
    end = index + all.length;
  }
  return { name, written, current: current + written.slice(end), unsaid };
}

export const readDocuments = (): Promise<readonly Document[]> => Promise.all(PAGES.map(readDocument));
