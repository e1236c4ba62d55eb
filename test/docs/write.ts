/* `npm run docs` writes the generated blocks of the documents, and the pictures. With `--check` it writes
   nothing, and fails if it would, or if a cell is unwritten. */
import { existsSync, writeFileSync } from 'node:fs';
import { readDocuments } from './documents.ts';
import { read, ROOT } from './pages.ts';
import { PICTURES } from './pictures.ts';

const isCheck = process.argv.includes('--check');

/** Writes the text, or with `--check` reports that it differs. */
function update(name: string, written: string, current: string): void {
  if (written === current) return;

  if (isCheck) {
    console.error(`${name}: differs from the code: run npm run docs`);
    process.exitCode = 1;
  } else {
    writeFileSync(new URL(name, ROOT), current);
    console.log(`${name}: written`);
  }
}

for (const { name, written, current, unsaid } of await readDocuments()) {
  for (const row of unsaid) console.error(`${name}: write the missing cell by hand: ${row}`);
  if (isCheck && unsaid.length > 0) process.exitCode = 1;
  update(name, written, current);
}

for (const [name, current] of Object.entries(PICTURES)) {
  update(name, existsSync(new URL(name, ROOT)) ? read(name) : '', current);
}
