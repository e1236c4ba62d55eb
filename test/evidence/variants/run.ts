/* Runs the tests on the service with the token cache off, and with one entry in it: neither may change what is
   accepted. Arguments select variants by name.

   Shows: the tests without a token cache, and with a one-entry cache.
   Takes: 3 min.
   Needs: nothing. */
import { rmSync } from 'node:fs';
import { describeFigures, runTests } from '../matrix/run-tests.ts';
import { makeTree } from './tree.ts';
import { VARIANTS, type Variant } from './variants.ts';

/** Whether a test checks the changed code itself; also asserts that the change applies. */
const isOfVariant = ({ breaks }: Variant, name: string) =>
  breaks.includes(name) || name.startsWith('the variant ');

const asked = process.argv.slice(2);
let isGood = true;

for (const variant of VARIANTS.filter(({ name }) => asked.length === 0 || asked.includes(name))) {
  const tree = makeTree([variant]);
  try {
    const figures = await runTests(process.execPath, tree);
    const failures = figures.failures.filter((name) => !isOfVariant(variant, name));
    const failed = figures.failed - (figures.failures.length - failures.length);
    console.log(describeFigures(variant.name, { ...figures, failed, failures }));
    isGood &&= failed === 0 && failures.length === 0;
  } finally {
    rmSync(tree, { recursive: true });
  }
}

process.exitCode = isGood ? 0 : 1;
