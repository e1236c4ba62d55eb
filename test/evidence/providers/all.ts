/* Every fact about the providers that run here: what the service says of their tokens under which settings. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import { samplesUnder } from '../../docs/pages.ts';
import {
  draftProof,
  makeProofKey,
  sealProof,
  type ProofAlgorithm,
  type ProofKey,
} from '../../support/proof.ts';
import { startProcess, type TestProcess } from '../../support/process.ts';
import type { Environment } from '../../support/settings.ts';
import { startBetterAuth, type BetterAuth, type JwtOptions } from './better-auth.ts';
import { API, OPAQUE, resourceFor, startOidcProvider, type OidcProvider } from './oidc-provider.ts';

const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'ES384', 'ES512', 'EdDSA'] as const;

const versionOf = (name: string) => {
  const file = new URL(`../node_modules/${name}/package.json`, import.meta.url);
  return `${name} ${(JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version}`;
};

/** There are no settings in it. */
const HERE = fileURLToPath(new URL('.', import.meta.url));

const SERVER = fileURLToPath(new URL('../../../dist/server.js', import.meta.url));

let isGood = true;

function report(fact: string, found: string, expected: string): void {
  const isExpected = found === expected;
  isGood &&= isExpected;
  console.log(`${fact}: ${isExpected ? found : `FOUND ${found}, EXPECTED ${expected}`}`);
}

/** What the service says: the status, and the reason of a refusal from its log. */
async function verdictOf(
  service: TestProcess,
  token: string,
  route: string,
  key?: ProofKey,
): Promise<string> {
  const uri = `http://127.0.0.1:${service.port}${route}`;
  const draft = key && draftProof(key, { token, uri, nowSeconds: Math.floor(Date.now() / 1000) });
  const headers = draft && { authorization: `DPoP ${token}`, dpop: sealProof(draft) };
  const { status } = await service.ask(route, headers ? { headers } : { token });
  if (status === 200) return '200';

  return `${status} ${(await service.logged('request refused')).reason}`;
}

interface Question {
  readonly environment: Environment;
  readonly token: string;
  readonly route?: string;
  readonly key?: ProofKey;
}

/** The verdict of a service that is started for this question alone. */
async function ask({ environment, token, route = '/api/private', key }: Question): Promise<string> {
  const service = await startProcess({
    environment: { HOST: '127.0.0.1', LOG_LEVEL: 'debug', ...environment },
  });
  try {
    return await verdictOf(service, token, route, key);
  } finally {
    await service.stop();
  }
}

const settingsFor = ({ domain }: BetterAuth): Environment => ({
  IDP_DOMAIN: domain,
  IDP_ISSUER: `https://${domain}`,
  IDP_AUDIENCE: `https://${domain}`,
  IDP_JWKS_URI: `https://${domain}/api/auth/jwks`,
});

const withScope: JwtOptions = {
  jwt: {
    audience: 'https://api.example.com',
    definePayload: ({ user }) => ({ email: user.email, scope: 'read:messages' }),
  },
};

const without = (environment: Environment, name: string): Environment =>
  Object.fromEntries(Object.entries(environment).filter(([one]) => one !== name));

async function tryBetterAuth(): Promise<void> {
  const provider = await startBetterAuth();
  const name = `${versionOf('better-auth')}, jwt()`;
  const environment = { ...settingsFor(provider), IDP_ALGORITHMS: 'EdDSA' };
  const token = await provider.token();
  const byDefault = without(environment, 'IDP_ALGORITHMS');
  const withSlash = without(environment, 'IDP_ISSUER');
  const discovering = without(environment, 'IDP_JWKS_URI');

  report(`${name}, IDP_ALGORITHMS=EdDSA`, await ask({ environment, token }), '200');
  report(
    `${name}, without IDP_ALGORITHMS`,
    await ask({ environment: byDefault, token }),
    '401 algorithm-refused',
  );
  const others = { ...environment, IDP_ALGORITHMS: ALGORITHMS.filter((one) => one !== 'EdDSA').join() };
  report(`${name}, with the five others`, await ask({ environment: others, token }), '401 algorithm-refused');
  report(`${name}, without IDP_ISSUER`, await ask({ environment: withSlash, token }), '401 issuer-mismatch');
  report(
    `${name}, without IDP_JWKS_URI`,
    await ask({ environment: discovering, token }),
    '503 keys-unavailable',
  );
  const session = provider.session;
  report(
    `${name}, the session's own token`,
    await ask({ environment, token: session }),
    '401 token-malformed',
  );
  const scoped = await ask({ environment, token, route: '/api/messages' });
  report(`${name}, a route that needs a scope`, scoped, '403 scope-missing');

  await tryCheck(name, environment, byDefault);
  await tryRotation(provider, name, environment);
  provider.stop();

  for (const alg of ['RS256', 'PS256', 'ES256', 'ES512'] as const) {
    const other = await startBetterAuth({ jwks: { keyPairConfig: { alg } } });
    const settings = { ...settingsFor(other), IDP_ALGORITHMS: alg };
    const verdict = await ask({ environment: settings, token: await other.token() });
    report(`${name}, keyPairConfig ${alg}, IDP_ALGORITHMS=${alg}`, verdict, '200');
    other.stop();
  }

  const guarded = await startBetterAuth(withScope);
  const settings = {
    ...settingsFor(guarded),
    IDP_ALGORITHMS: 'EdDSA',
    IDP_AUDIENCE: 'https://api.example.com',
  };
  const verdict = await ask({ environment: settings, token: await guarded.token(), route: '/api/messages' });
  report(`${name}, jwt.audience and a scope by definePayload`, verdict, '200');
  guarded.stop();
}

/** Its exit code, and what it writes to standard error. */
function check(environment: Environment): Promise<{ code: number; errors: string }> {
  const { PATH = '', NODE_EXTRA_CA_CERTS = '' } = process.env;
  const options = { cwd: HERE, env: { PATH, NODE_EXTRA_CA_CERTS, ...environment } };
  return new Promise((resolve) => {
    execFile(process.execPath, [SERVER, '--check'], options, (error, _, errors) => {
      resolve({ code: error === null ? 0 : Number(error.code), errors });
    });
  });
}

/** What the report of `--check` says of the keys, to an operator who has and who has not set the list. */
async function tryCheck(name: string, good: Environment, bad: Environment): Promise<void> {
  for (const [what, environment, expected] of [
    ['with IDP_ALGORITHMS=EdDSA', good, '0'],
    ['without IDP_ALGORITHMS', bad, '1 no-usable-key algorithm'],
  ] as const) {
    const { code, errors } = await check(environment);
    const told = /^signing keys could not be fetched: issuer \w+, ([\w-]+)(?: \((\w+)\))?;/m.exec(errors);
    const [, reason = '', cause = ''] = told ?? [];
    report(`${name}, --check ${what}`, [code, reason, cause].join(' ').trim(), expected);
  }
}

/** The service holds the keys already when the new one appears. */
async function tryRotation(provider: BetterAuth, name: string, environment: Environment): Promise<void> {
  const service = await startProcess({
    environment: { HOST: '127.0.0.1', LOG_LEVEL: 'debug', ...environment },
  });
  try {
    const old = await provider.token();
    report(`${name}, before a rotation`, await verdictOf(service, old, '/api/private'), '200');
    provider.rotate();
    const fresh = await provider.token();
    report(`${name}, the first token of a new key`, await verdictOf(service, fresh, '/api/private'), '200');
    const stale = await verdictOf(service, old, '/api/private');
    report(`${name}, a token whose key was taken away`, stale, '401 key-unknown');
  } finally {
    await service.stop();
  }
}

const settingsOf = ({ domain, issuer }: OidcProvider, algorithm: string): Environment => ({
  IDP_DOMAIN: domain,
  IDP_ISSUER: issuer,
  IDP_AUDIENCE: resourceFor(algorithm),
  IDP_TOKEN_TYPE: 'at+jwt',
});

async function tryOidcProvider(): Promise<void> {
  const provider = await startOidcProvider();
  const name = versionOf('oidc-provider');

  for (const algorithm of ALGORITHMS) {
    const token = await provider.token(algorithm);
    const settings = settingsOf(provider, algorithm);
    const environment = { ...settings, IDP_ALGORITHMS: algorithm };
    const verdict = await ask({ environment, token, route: '/api/messages' });
    report(`${name}, ${algorithm}, IDP_ALGORITHMS=${algorithm}`, verdict, '200');

    const isDefault = algorithm === 'RS256';
    const byDefault = await ask({ environment: settings, token });
    report(
      `${name}, ${algorithm}, without IDP_ALGORITHMS`,
      byDefault,
      isDefault ? '200' : '401 algorithm-refused',
    );
  }

  // RFC 9864 gives the same signature another name.
  const settings = settingsOf(provider, 'Ed25519');
  const named = await ask({
    environment: { ...settings, IDP_ALGORITHMS: ALGORITHMS.join() },
    token: await provider.token('Ed25519'),
  });
  report(`${name}, under the name Ed25519, all six allowed`, named, '401 algorithm-refused');

  await tryFapi(provider, name);
  await tryOpaque(provider, name);
  provider.stop();
}

/** Opaque tokens by introspection. To a JWT of its own, oidc-provider says 400. */
async function tryOpaque(provider: OidcProvider, name: string): Promise<void> {
  const settings = {
    IDP_DOMAIN: provider.domain,
    IDP_ISSUER: provider.issuer,
    IDP_AUDIENCE: OPAQUE,
    IDP_ALGORITHMS: 'RS256',
    IDP_INTROSPECTION: 'opaque',
    IDP_INTROSPECTION_CLIENT_ID: API.id,
    IDP_INTROSPECTION_CLIENT_SECRET: API.secret,
    IDP_INTROSPECTION_CACHE_SECONDS: '0',
  };
  const { token, withdraw } = await provider.opaqueToken();
  const scoped = await ask({ environment: settings, token, route: '/api/messages' });
  report(`${name}, an opaque token by introspection`, scoped, '200');
  const other = { ...settings, IDP_AUDIENCE: 'https://other.example.com' };
  report(
    `${name}, an opaque token for another API`,
    await ask({ environment: other, token }),
    '401 audience-mismatch',
  );
  const wrong = { ...settings, IDP_INTROSPECTION_CLIENT_SECRET: 'x' };
  report(
    `${name}, introspection with a wrong secret`,
    await ask({ environment: wrong, token }),
    '503 introspection-unavailable',
  );
  report(`${name}, --check of introspection`, String((await check(settings)).code), '0');
  await withdraw();
  report(
    `${name}, an opaque token that was withdrawn`,
    await ask({ environment: settings, token }),
    '401 token-inactive',
  );

  const jwt = { ...settingsOf(provider, 'RS256'), IDP_INTROSPECTION: 'jwt' };
  const ofJwts = { ...settings, ...jwt };
  report(
    `${name}, a JWT by introspection`,
    await ask({ environment: ofJwts, token: await provider.token('RS256') }),
    '503 introspection-unavailable',
  );
}

/** The settings of the page. */
const FAPI = parseEnv(samplesUnder('docs/fapi.md', 'Settings', 'sh')[0] ?? '') as Environment;

async function tryFapi(provider: OidcProvider, name: string): Promise<void> {
  const under = async (algorithm: string, proof?: ProofAlgorithm) => {
    const key = proof && makeProofKey(proof);
    const token = await provider.token(algorithm, key);
    return ask({ environment: { ...settingsOf(provider, algorithm), ...FAPI }, token, ...(key && { key }) });
  };

  for (const algorithm of ['PS256', 'ES256', 'EdDSA'] as const) {
    report(`${name}, FAPI 2.0, ${algorithm} token and proof`, await under(algorithm, algorithm), '200');
  }
  const weak = await under('RS256', 'ES256');
  report(`${name}, FAPI 2.0, an RS256 token`, weak, '401 algorithm-refused');
  report(`${name}, FAPI 2.0, a Bearer token`, await under('PS256'), '401 scheme-refused');
}

/** Whether every fact is as expected. */
export async function runAll(): Promise<boolean> {
  await tryBetterAuth();
  await tryOidcProvider();
  return isGood;
}
