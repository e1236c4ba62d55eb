/* Runs real providers on loopback over TLS and sends their tokens to the service that an operator would run. One line a
   fact; docs/providers.md and docs/fapi.md rest on them.

   Shows: tokens from real `better-auth` and `oidc-provider` servers.
   Takes: 15 s.
   Needs: packages. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** Trusts the provider's certificate in the way that an operator would. */
const NODE_EXTRA_CA_CERTS = path('../../idp/tls/authority.pem');

if (process.env.NODE_EXTRA_CA_CERTS === NODE_EXTRA_CA_CERTS) {
  const { runAll } = await import('./all.ts');
  process.exitCode = (await runAll()) ? 0 : 1;
} else {
  const words = ['--no-warnings', '--import', 'tsx', path('run.ts')];
  const env = { ...process.env, NODE_EXTRA_CA_CERTS };
  process.exitCode = spawnSync(process.execPath, words, { stdio: 'inherit', env }).status ?? 1;
}
