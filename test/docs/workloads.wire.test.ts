/* The settings and routes of docs/workloads.md, each against a provider of that shape. A proxy leads the names of
   the platforms here, where an authority of the tests vouches for them. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test, type TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { createService, loadSettings, Routes } from '../../src/gatehouse.ts';
import { startProvider, type Provider } from '../idp/provider.ts';
import { startProxy } from '../idp/proxy.ts';
import { CLUSTER_AUTHORITY, directoryFor, startCluster, type Asked } from '../options/key-access-fixture.ts';
import { fetchKeys, sourceOf } from '../verify/keys/fetch-fixture.ts';
import { ROOT, samplesUnder } from './pages.ts';

let signer: Provider;
let keySet: object;

before(async () => {
  signer = await startProvider();
  keySet = await fetchKeys(sourceOf(signer));
});

after(() => signer.stop());

const PAGE = 'docs/workloads.md';

const AUDIENCE = 'https://orders.example.com';

const POD_TOKEN = 'token.of.this-pod';

const DISCOVERY = '/.well-known/openid-configuration';

/** What the page shows for a platform. */
interface Sample {
  createService: typeof createService;
  loadSettings: typeof loadSettings;
  routes: Routes['routes'];
}

interface Platform {
  readonly section: string;
  readonly issuer: string;
  readonly jwksUri: string;
  /** What its discovery document says in place of it. */
  readonly named?: string;
  readonly ownToken?: string;
  readonly asked: readonly string[];
  readonly claims: Readonly<Record<string, unknown>>;
  readonly calls: readonly (readonly [what: string, call: string, changes: object, status: number])[];
}

const ofPod = (namespace: string, name: string) => ({
  sub: `system:serviceaccount:${namespace}:${name}`,
  'kubernetes.io': {
    namespace,
    pod: { name: 'x-1', uid: '5e0c' },
    serviceaccount: { name, uid: '14ee' },
  },
});

const PLATFORMS: readonly Platform[] = [
  {
    section: 'Kubernetes',
    issuer: 'https://kubernetes.default.svc.cluster.local',
    jwksUri: 'https://kubernetes.default.svc/openid/v1/jwks',
    named: 'https://ip-10-0-0-1.internal:443/openid/v1/jwks',
    ownToken: POD_TOKEN,
    asked: ['kubernetes.default.svc/openid/v1/jwks'],
    claims: ofPod('billing', 'invoicer'),
    calls: [
      ['a pod of the namespace', 'GET /api/orders', {}, 200],
      ['the account', 'GET /api/invoices', {}, 200],
      ['another account of the namespace', 'GET /api/invoices', ofPod('billing', 'invoicer2'), 403],
      ['another namespace', 'GET /api/orders', ofPod('billing2', 'invoicer'), 403],
      ['a token without the claim', 'GET /api/orders', { 'kubernetes.io': undefined }, 403],
      ['a token for the API server', 'GET /api/orders', { aud: ['https://kubernetes.default.svc'] }, 401],
    ],
  },
  {
    section: 'GitHub Actions',
    issuer: 'https://token.actions.githubusercontent.com',
    jwksUri: 'https://token.actions.githubusercontent.com/.well-known/jwks',
    asked: [
      `token.actions.githubusercontent.com${DISCOVERY}`,
      'token.actions.githubusercontent.com/.well-known/jwks',
    ],
    claims: {
      sub: 'repo:octo-org/octo-repo:environment:production',
      repository: 'octo-org/octo-repo',
      repository_id: '74',
      repository_owner: 'octo-org',
      repository_owner_id: '65',
      environment: 'production',
      job_workflow_ref: 'octo-org/octo-repo/.github/workflows/release.yml@refs/heads/main',
      ref: 'refs/heads/main',
    },
    calls: [
      ['the repository in its environment', 'POST /api/releases', {}, 200],
      ['a repository that took over the name', 'POST /api/releases', { repository_id: '75' }, 403],
      ['another environment', 'POST /api/releases', { environment: 'staging' }, 403],
      ['a job without environment', 'POST /api/releases', { environment: undefined }, 403],
      ['the usual audience', 'POST /api/releases', { aud: 'https://github.com/octo-org' }, 401],
    ],
  },
  {
    section: 'GitLab',
    issuer: 'https://gitlab.com',
    jwksUri: 'https://gitlab.com/oauth/discovery/keys',
    asked: [`gitlab.com${DISCOVERY}`, 'gitlab.com/oauth/discovery/keys'],
    claims: {
      sub: 'project_path:my-group/my-project:ref_type:branch:ref:main',
      project_id: '20',
      project_path: 'my-group/my-project',
      namespace_id: '72',
      ref_protected: 'true',
    },
    calls: [
      ['a protected ref of the project', 'POST /api/releases', {}, 200],
      ['another project', 'POST /api/releases', { project_id: '21' }, 403],
      ['an unprotected ref', 'POST /api/releases', { ref_protected: 'false' }, 403],
      ['another audience', 'POST /api/releases', { aud: 'https://gitlab.com' }, 401],
    ],
  },
  {
    section: 'Google',
    issuer: 'https://accounts.google.com',
    jwksUri: 'https://www.googleapis.com/oauth2/v3/certs',
    asked: [`accounts.google.com${DISCOVERY}`, 'www.googleapis.com/oauth2/v3/certs'],
    claims: {
      sub: '107517467455664443765',
      azp: '107517467455664443765',
      email: 'invoicer@my-project.iam.gserviceaccount.com',
      email_verified: true,
    },
    calls: [
      ['the account', 'GET /api/orders', {}, 200],
      ['a new account with its address', 'GET /api/orders', { sub: '200', azp: '200' }, 403],
      ['another audience', 'GET /api/orders', { aud: '32555940559.apps.googleusercontent.com' }, 401],
    ],
  },
];

/** The platform, as its names lead to it. */
async function startPlatform(t: TestContext, { issuer, jwksUri, named = jwksUri, ownToken }: Platform) {
  const documentsFor = ({ host, path }: Asked) => ({
    [path]: `https://${host}${path}` === jwksUri ? keySet : undefined,
    ...(path === DISCOVERY && { [DISCOVERY]: { issuer, jwks_uri: named } }),
  });

  const wanted = ownToken === undefined ? undefined : () => ownToken;
  const server = await startCluster(t, (_, asked) => documentsFor(asked), wanted);
  const proxy = await startProxy(server.port);
  t.after(() => proxy.stop());
  return { server, IDP_PROXY: `http://127.0.0.1:${proxy.port}` };
}

/** The settings of the page, with files that exist. */
function environmentIn(section: string, write: ReturnType<typeof directoryFor>): Record<string, string> {
  const [lines = ''] = samplesUnder(PAGE, section, 'sh');
  const settings = Object.fromEntries(
    lines
      .trim()
      .split('\n')
      .map((line) => line.split('=')),
  );
  assert.equal(settings.IDP_AUDIENCE, AUDIENCE);
  const hasToken = settings.IDP_JWKS_TOKEN_FILE !== undefined;
  return {
    ...settings,
    ...(hasToken && { IDP_JWKS_TOKEN_FILE: write('pod-token', `${POD_TOKEN}\n`) }),
    IDP_CA_FILE: write('ca.crt', readFileSync(CLUSTER_AUTHORITY)),
    LOG_LEVEL: 'silent',
  };
}

async function importSample(section: string, write: ReturnType<typeof directoryFor>): Promise<Sample> {
  const [sample = ''] = samplesUnder(PAGE, section, 'ts');
  const main = JSON.stringify(new URL('src/gatehouse.ts', ROOT).href);
  const more = `\nexport { createService, loadSettings } from ${main};\n`;
  const file = write('routes.mjs', sample.replace("'gatehouse-http'", main) + more);
  return import(pathToFileURL(file).href);
}

for (const platform of PLATFORMS) {
  const { section, issuer, claims, calls } = platform;

  test(`docs/workloads.md accepts the tokens of ${section} that it means, and no others [§25]`, async (t) => {
    const write = directoryFor(t);
    const { server, IDP_PROXY } = await startPlatform(t, platform);
    const sample = await importSample(section, write);
    const settings = await sample.loadSettings(
      { ...environmentIn(section, write), IDP_PROXY },
      '/nonexistent',
    );
    const routes = { routes: sample.routes };
    const service = sample.createService(routes, { ...settings, port: 0, host: '127.0.0.1' });
    const origin = await service.listen();
    t.after(() => service.stop());

    for (const [what, call, changes, status] of calls) {
      const token = signer.issue({ iss: issuer, aud: AUDIENCE, ...claims, ...changes }, { typ: undefined });
      const [method = '', path = ''] = call.split(' ');
      const headers = { Authorization: `Bearer ${token}` };
      const response = await fetch(`${origin}${path}`, { method, headers });
      const text = await response.text();
      assert.equal(response.status, status, `${what}: ${text}`);
    }
    assert.deepEqual(
      server.asked.map(({ host, path }) => host + path),
      platform.asked,
    );
    const shown = platform.ownToken === undefined ? undefined : `Bearer ${platform.ownToken}`;
    for (const { authorization } of server.asked) assert.equal(authorization, shown);
  });
}
