/* Prints the index of clauses; exits with 1 when a clause is cited by the code or by the tests alone.

   Shows: the standards' clauses that the code implements, with the tests that cite them.
   Takes: 3 s.
   Needs: nothing. */
import { absent, readClauses } from '../../clauses/clause-index.ts';

const index = readClauses();

for (const { clause, files, tests } of index.entries) {
  console.log(`${clause}\n  src: ${files.join(', ')}${tests.map((test) => `\n  test: ${test}`).join('')}`);
}

const complaints = [
  ...index.untested.map((clause) => `cited by no test: ${clause}`),
  ...index.unheld.map((clause) => `cited by no file of src: ${clause}`),
  ...absent(index).map((standard) => `not cited at all: ${standard}`),
];

console.log(
  `\n${index.entries.length} clauses, ${new Set(index.entries.flatMap(({ tests }) => tests)).size} names of tests`,
);

for (const complaint of complaints) console.error(complaint);
process.exitCode = complaints.length > 0 ? 1 : 0;
