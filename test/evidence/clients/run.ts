/* Real clients find out by themselves where to get a token, get it, and are answered: both MCP SDKs, one of
   them with its DPoP session, and oauth4webapi, against oidc-provider with resource indicators; and a page in
   Chromium reads refusal, document and answer across origins. The MCP server of docs/for-mcp-and-agents.md runs
   with exactly its lines and the server of either SDK: clients step up for a tool, and raw requests attack
   it.

   Shows: MCP SDKs, `oauth4webapi` and a browser page, given only the API's URL.
   Takes: 30 s.
   Needs: packages, and Chromium for the page. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../support/free-port.ts';

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** Trusts the provider's certificate in the way that an operator would. */
const NODE_EXTRA_CA_CERTS = path('../../idp/tls/authority.pem');

if (process.env.NODE_EXTRA_CA_CERTS === NODE_EXTRA_CA_CERTS) {
  const { runAll } = await import('./all.ts');
  process.exitCode = (await runAll(await freePort())) ? 0 : 1;
} else {
  const words = ['--no-warnings', '--import', 'tsx', path('run.ts')];
  const env = { ...process.env, NODE_EXTRA_CA_CERTS };
  process.exitCode = spawnSync(process.execPath, words, { stdio: 'inherit', env }).status ?? 1;
}
