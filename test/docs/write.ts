/* `npm run docs` writes what is generated in the documents; with `--check` it writes nothing and fails where
   it would. */
import { writeFileSync } from 'node:fs';
import { readDocuments } from './documents.ts';
import { ROOT } from './pages.ts';

const isCheck = process.argv.includes('--check');

for (const { name, written, current, unsaid } of await readDocuments()) {
  for (const row of unsaid) console.error(`${name}: say by hand what is to be said of ${row}`);
  if (written === current) continue;
  if (isCheck) {
    console.error(`${name}: is not what the code says; run npm run docs`);
    process.exitCode = 1;
  } else {
    writeFileSync(new URL(name, ROOT), current);
    console.log(`${name}: written`);
  }
}
