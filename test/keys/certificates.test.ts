/* Certificate checks of the outbound request in a process that was told to leave them out. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startProvider } from '../idp/provider.ts';
import { keySetOf } from './fetching.ts';

test('checks certificates when NODE_TLS_REJECT_UNAUTHORIZED=0 asks for the opposite', async (context) => {
  const provider = await startProvider();
  context.after(() => provider.stop());
  const fetchModule = new URL('../../src/keys/fetch.ts', import.meta.url).href;
  const script = `import { createKeyFetcher } from ${JSON.stringify(fetchModule)};
    const fetched = createKeyFetcher({ domain: '', issuer: '', jwksUri: process.env.ADDRESS })();
    console.log(await fetched.then(() => 'fetched', ({ reason }) => reason));`;
  const run = async (variables: Record<string, string>) => {
    const { PATH = '', NODE_V8_COVERAGE } = process.env;
    const coverage = NODE_V8_COVERAGE === undefined ? {} : { NODE_V8_COVERAGE };
    const env = { PATH, ...coverage, ADDRESS: keySetOf(provider), ...variables };
    const args = ['--import', 'tsx', '--input-type=module', '--eval', script];
    const cwd = fileURLToPath(new URL('../..', import.meta.url));
    return (await promisify(execFile)(process.execPath, args, { env, cwd })).stdout.trim();
  };
  const trusted = { NODE_EXTRA_CA_CERTS: provider.authorityFile };
  const off = { NODE_TLS_REJECT_UNAUTHORIZED: '0' };
  const results = await Promise.all([run({ ...off, ...trusted }), run(off)]);
  assert.deepEqual(results, ['fetched', 'certificate-refused']);
});
