/* `npm run docs` writes the generated blocks of the documents. With `--check` it writes nothing, and fails if it
   would. */
import { writeFileSync } from 'node:fs';
import { readDocuments } from './documents.ts';
import { ROOT } from './pages.ts';

const isCheck = process.argv.includes('--check');

for (const { name, written, current, unsaid } of await readDocuments()) {
  for (const row of unsaid) console.error(`${name}: write the missing cell by hand: ${row}`);
  if (written === current) continue;
  if (isCheck) {
    console.error(`${name}: differs from the code: run npm run docs`);
    process.exitCode = 1;
  } else {
    writeFileSync(new URL(name, ROOT), current);
    console.log(`${name}: written`);
  }
}
