/* Prints what gatehouse makes of the vectors that others published: how many there are and from where, how many of
   them are here, how many it judges as their authors do, and why the rest differ. Exits with 1 for a difference
   without a reason.

   Shows: the test vectors of Wycheproof and RFCs 7515, 7520, 7638, 8037 and 9449.
   Takes: 2 s.
   Needs: nothing. */
import { runSuites } from '../../vectors/suites.ts';

/** Wycheproof files for the six algorithms that were not available. */
const MISSING = ['rsa_signature_{2048,3072,4096}_sha256_test', 'rsa_pss_{3072,4096}_sha256_mgf1_32_test'];

const suites = await runSuites();

console.table(
  Object.fromEntries(
    suites.map(({ name, published, tried, same, different }) => {
      const differing = Object.values(different).flat().length;
      return [name, { published, here: tried, 'judged the same': same, differs: differing }];
    }),
  ),
);

for (const { name, source, version, published, tried, different } of suites) {
  console.log(`\n${name}: ${source}; ${version}`);
  if (tried < published) console.log(`  ${published - tried} of ${published} are not here`);
  for (const [reason, names] of Object.entries(different)) {
    console.log(`  ${names.length} ${reason}`);
    console.log(`    ${names.slice(0, 12).join('; ')}${names.length > 12 ? '; …' : ''}`);
  }
}

for (const file of MISSING) console.log(`\nC2SP/wycheproof, testvectors_v1/${file}.json: not here`);

const sum = (count: (suite: (typeof suites)[number]) => number) =>
  suites.reduce((total, suite) => total + count(suite), 0);

console.log(`\n${sum(({ tried }) => tried)} vectors, ${sum(({ same }) => same)} judged as their authors do`);
