/* A short run of the fuzzer, so that the tool works on the day when it is needed. */
import { fileURLToPath } from 'node:url';
import { testTool } from '../../support/private-package.ts';

testTool(
  'the fuzzer finds nothing in ten seconds that others judge otherwise without a reason',
  fileURLToPath(new URL('.', import.meta.url)),
  { FUZZ_SECONDS: '10', FUZZ_BODIES: '1000' },
);
