/* Short runs of the tools that use other people's packages, so that they keep working. One file, since the
   tools share what is installed. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { missingPackages } from '../support/private-package.ts';
import { withReason } from '../support/skipped.ts';

const missing = missingPackages();

/** Checks the types of a tool and runs it. Fails if the tool does. */
function testTool(
  name: string,
  tool: string,
  environment: Record<string, string> = {},
  asked: readonly string[] = [],
): void {
  const folder = fileURLToPath(new URL(`${tool}/`, import.meta.url));

  test(withReason(name, missing), { skip: missing !== undefined }, () => {
    // Other tools are compiled with the tests.
    if (existsSync(`${folder}tsconfig.json`)) {
      assert.equal(spawnSync('npx', ['tsc', '-p', folder], { encoding: 'utf8' }).stdout, '');
    }
    const words = ['--import', 'tsx', `${folder}run.ts`, ...asked];
    const { status, stdout, stderr } = spawnSync(process.execPath, words, {
      encoding: 'utf8',
      // Coverage is that of the tests: tools compile src in other ways, which would count as other functions.
      env: { ...process.env, NODE_V8_COVERAGE: undefined, ...environment },
    });
    assert.equal(status, 0, stdout.slice(-5000) + stderr);
  });
}

testTool(
  'MCP clients, oauth4webapi and a page in a browser find the provider; clients of an MCP server step up, attacks fail',
  'clients',
);

testTool('the fuzzer finds no unexplained disagreement in ten seconds', 'fuzz', {
  FUZZ_SECONDS: '10',
  FUZZ_BODIES: '1000',
});

testTool(
  'esbuild, Rolldown and Bun make one file of an API and the package, as docs/your-own-api.md says',
  'package',
  {},
  ['bundles'],
);

testTool('every call of the demo page has the announced status in Chromium', 'page');

testTool(
  'better-auth and oidc-provider sign tokens that the service accepts as docs/providers.md says',
  'providers',
);

testTool('errors are recognized in the realms of Jest and of Vitest', 'runners');

testTool('routes accept the schemas of zod, valibot and ArkType, by type and over the wire', 'schemas');

testTool('the gate and streams work in real servers as the pages say', 'servers', {}, ['fast']);

testTool('GitHub and actionlint find nothing in the workflows, but find planted faults', 'workflows');
