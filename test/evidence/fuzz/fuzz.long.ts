/* A short run of the fuzzer, so that the tool works on the day when it is needed. */
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runTool } from '../../support/private-package.ts';

test('the fuzzer finds nothing in ten seconds that others judge otherwise without a reason', (context) => {
  const environment = { FUZZ_SECONDS: '10', FUZZ_BODIES: '1000' };
  runTool(context, fileURLToPath(new URL('.', import.meta.url)), environment);
});
